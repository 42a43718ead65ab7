"""The registry of methods: every entry runs, and is the function that its name says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, assert_close, cast, exactly, rounded

import jaxmeta
from jaxmeta import METHODS, Settings

N = 40
WIDTHS = (6, 4, 3)


@pytest.fixture
def sources(rng):
    """As `build_sources` makes them: orthogonal columns, the longest first."""
    made = []
    for k in WIDTHS:
        q = np.linalg.qr(rng.normal(size=(N, k)))[0]
        made.append(rounded(q * np.sqrt(np.arange(k, 0, -1) + 3.0)))
    return cast(tuple(made))


@pytest.fixture
def settings():
    return Settings(sigmas=(0.1, 0.15, 0.2), key=jax.random.key(0), epochs=2, neighbours=5)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs(name, sources, settings):
    found = jaxmeta.meta_embedding(name, sources, settings)
    assert found.shape[0] == N
    assert found.dtype == DTYPE
    assert np.isfinite(found).all()
    assert METHODS[name].summary


@pytest.mark.parametrize("name", METHODS)
def test_missing_words_are_ignored_or_refused(name, sources, settings, rng):
    present = rng.uniform(size=(N, 3)) < 0.8
    present[:, 0] |= ~present.any(axis=1)
    spoilt = tuple(
        jnp.where(jnp.asarray(present[:, j : j + 1]), e, jnp.nan) for j, e in enumerate(sources)
    )
    given = settings._replace(present=jnp.asarray(present))
    if not METHODS[name].missing:
        with pytest.raises(ValueError, match=f"expected all for {name}".replace("+", r"\+")):
            jaxmeta.meta_embedding(name, spoilt, given)
        given = given._replace(present=jnp.ones((N, 3), bool))
        assert np.isfinite(jaxmeta.meta_embedding(name, sources, given)).all()
        return
    assert np.isfinite(jaxmeta.meta_embedding(name, spoilt, given)).all()


def test_weights_by_noise_are_those_of_the_library(sources, settings):
    values = tuple(jnp.sum(e**2, axis=0) for e in sources)
    sigmas = settings.sigmas
    ideals = tuple(jaxmeta.usvt(v, sigma=s, n=N) for v, s in zip(values, sigmas, strict=True))
    expected = {
        "SW": jaxmeta.source_weights(ideals, values, alpha=0.5),
        "DW": jaxmeta.dimension_weights(ideals, values, alpha=0.5),
        "aligned": jaxmeta.aligned_weights(values, sigmas=sigmas, n=N, alpha=0.5),
    }
    for name, weights in expected.items():
        found = exactly(jaxmeta.meta_embedding(name, sources, settings))
        direct = exactly(jaxmeta.concatenate(sources, weights))
        assert_close(found @ found.T, direct @ direct.T, scale=300)


def test_dimensions_are_chosen(sources, settings):
    assert jaxmeta.meta_embedding("SVD", sources, settings).shape[1] == sum(WIDTHS)
    for name in ("SVD", "1TON", "1TON as released", "1TON+", "LLE", "AAEME"):
        assert jaxmeta.meta_embedding(name, sources, settings._replace(k=2)).shape == (N, 2)


def test_errors(sources):
    with pytest.raises(ValueError, match=r"name: got 'PCA', expected one of default, UW"):
        jaxmeta.meta_embedding("PCA", sources)
    with pytest.raises(ValueError, match=r"settings\.sigmas: got None, expected it for DW"):
        jaxmeta.meta_embedding("DW", sources)
    with pytest.raises(ValueError, match=r"settings\.key: got None, expected it for LLE"):
        jaxmeta.meta_embedding("LLE", sources)
    with pytest.raises(ValueError, match=r"settings\.sigmas: got 2 entries, expected 3"):
        jaxmeta.meta_embedding("SW", sources, Settings(sigmas=(0.1, 0.2)))
    with pytest.raises(ValueError, match="rows in"):
        jaxmeta.meta_embedding("UW", (sources[0], sources[1][1:]))
