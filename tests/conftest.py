"""Settings of the whole suite: strict JAX, and examples that are the same on every run."""

import itertools

import hypothesis
import jax
import jax.monitoring
import numpy as np
import pytest

# Silent promotion hides dtype and shape errors: in tests it is an error.
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")

hypothesis.settings.register_profile(
    "jaxmeta",
    deadline=None,  # the first example of a shape compiles
    derandomize=True,
    database=None,
    max_examples=50,
)
hypothesis.settings.load_profile("jaxmeta")


TESTS = itertools.count(1)


@pytest.fixture(autouse=True)
def _forget():
    """Now and then, drop what was compiled: a process may map 65,530 pieces of memory on Linux."""
    yield
    if next(TESTS) % 200 == 0:
        jax.clear_caches()


@pytest.fixture
def rng():
    """Numbers that are the same on every run."""
    return np.random.default_rng(20220101)


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
