"""Settings of the whole suite: strict JAX, and examples that are the same on every run."""

import itertools
import sys
from pathlib import Path

import hypothesis
import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest

# Silent promotion hides dtype and shape errors: in tests it is an error.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
# Programs run for milliseconds here and compile for seconds.
jax.config.update("jax_disable_most_optimizations", True)

hypothesis.settings.register_profile(
    "jaxmeta",
    deadline=None,  # the first example of a shape compiles
    derandomize=True,
    database=None,
    max_examples=50,
)
hypothesis.settings.load_profile("jaxmeta")

IN_64_BIT = jnp.zeros(()).dtype == jnp.float64
TESTS = itertools.count(1)
MAPS = Path("/proc/self/maps")
MOST_MAPS = 50_000  # a process may map 65,530 pieces of memory on Linux


# Files that take long begin first, so that no worker waits for one in the end.
LONGEST = (
    "signals.md", "quickstart.md", "test_tables.py", "test_plans.py", "test_theory.py",
    "test_promises_spectra.py", "test_promises_weights.py", "test_promises_rooms.py",
    "test_promises_noise.py", "test_promises_plans.py", "test_quadratic.py",
    "test_experiments.py", "test_similarity.py", "test_similarity_by_chance.py", "test_mesh.py",
    "test_cluster.py", "test_lowering.py",
)  # fmt: skip


def pytest_collection_modifyitems(config, items):
    """Put long files first; deselect, and do not skip, what the other leg runs.

    A skip says that something is missing.
    """
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))
    others = [item for item in items if IN_64_BIT and item.get_closest_marker("one_leg")]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if not item.get_closest_marker("one_leg")]


@pytest.fixture(autouse=True)
def _forget():
    """Drop what was compiled when the process is near the limit of its memory maps."""
    yield
    if next(TESTS) % 20 == 0 and sys.platform == "linux":
        with MAPS.open("rb") as maps:
            near = sum(1 for _ in maps) > MOST_MAPS
        if near:
            jax.clear_caches()


@pytest.fixture
def rng():
    """Numbers that are the same on every run."""
    return np.random.default_rng(20220101)


@pytest.fixture
def rejected():
    """Assert that a call is rejected with words that match."""

    def assert_rejected(match, function, *arguments, error=ValueError, **settings):
        with pytest.raises(error, match=match):
            function(*arguments, **settings)

    return assert_rejected


@pytest.fixture(scope="session")
def hooked(request):
    """Whether jaxtyping checks the annotations of the library in this run."""
    return bool(request.config.getoption("--jaxtyping-packages"))


@pytest.fixture
def compilations():
    """Names of the programs that were compiled since the start of the test."""
    names = []

    def listen(event, duration, **_):
        del duration
        if event.endswith("backend_compile_duration"):
            names.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)
