"""The registry of methods: every entry runs, and is the function that its name says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, assert_close, cast, exactly, rounded

import jaxmeta
from jaxmeta import METHODS, WEIGHTINGS, Settings, Spectrum
from jaxmeta.files import Vectors, align
from jaxmeta.plans import PLANS
from jaxmeta.text import Source
from jaxmeta.weightings import Observed, weigh

pytestmark = pytest.mark.slow

N = 40
WIDTHS = (6, 4, 3)
SIGMAS = (0.1, 0.15, 0.2)


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
    return Settings(sigmas=SIGMAS, key=jax.random.key(0), epochs=2, neighbours=5)


def carried(name, settings, rng):
    """With all eigenvalues of the signals, and an ideal, for weights that depend on them."""
    needs = WEIGHTINGS[name].needs if name in WEIGHTINGS else ""
    if needs == "ideal":
        return settings._replace(ideal=cast(rounded(rng.normal(size=(N, 5)))))
    if needs not in ("eigenvalues", "strengths"):
        return settings
    values = [np.arange(k, 0, -1) + 3.0 for k in WIDTHS]
    inside = np.linspace(1.1, 0.1, N - 1) * (-1.0) ** np.arange(N - 1)
    observed = tuple(
        Observed(
            cast(v), N, 0.5, sigma, cast(np.append(v, inside[len(v) - 1 :])), False, cast(v - 1)
        )
        for v, sigma in zip(values, SIGMAS, strict=True)
    )
    return settings._replace(observed=observed)


@pytest.mark.one_leg
@pytest.mark.parametrize("name", METHODS)
def test_every_method_runs(name, sources, settings, rng):
    settings = carried(name, settings, rng)
    found = jaxmeta.meta_embedding(name, sources, settings)
    assert found.shape[0] == N
    assert found.dtype == DTYPE
    assert np.isfinite(found).all()
    assert METHODS[name].summary


@pytest.mark.one_leg
@pytest.mark.parametrize("name", ["default", *(x for x in METHODS if x not in PLANS), "1TON"])
def test_missing_words_are_ignored_or_refused(name, sources, settings, rng):
    present = rng.uniform(size=(N, 3)) < 0.8
    present[:, 0] |= ~present.any(axis=1)
    spoilt = tuple(
        jnp.where(jnp.asarray(present[:, j : j + 1]), e, jnp.nan) for j, e in enumerate(sources)
    )
    given = carried(name, settings, rng)._replace(present=jnp.asarray(present))
    if not METHODS[name].missing:
        with pytest.raises(ValueError, match=f"expected all for {name}".replace("+", r"\+")):
            jaxmeta.meta_embedding(name, spoilt, given)
        given = given._replace(present=jnp.ones((N, 3), bool))
        assert np.isfinite(jaxmeta.meta_embedding(name, sources, given)).all()
        return
    assert np.isfinite(jaxmeta.meta_embedding(name, spoilt, given)).all()


@pytest.mark.one_leg
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


@pytest.mark.one_leg
def test_dimensions_are_chosen(sources, settings):
    assert jaxmeta.meta_embedding("SVD", sources, settings).shape[1] == sum(WIDTHS)
    for name in ("SVD", "1TON", "1TON-released", "1TON+", "LLE", "AAEME"):
        assert jaxmeta.meta_embedding(name, sources, settings._replace(k=2)).shape == (N, 2)
    # The paper's 300 are more than SGNS and LSA have together: codes may be wider.
    assert jaxmeta.meta_embedding("AAEME", sources, settings).shape == (N, 300)
    assert jaxmeta.meta_embedding("LLE", sources, settings).shape == (N, sum(WIDTHS))


@pytest.mark.one_leg
def test_errors(sources):
    with pytest.raises(ValueError, match=r"name: got 'MEAN', expected one of 'default', 'UW'"):
        jaxmeta.meta_embedding("MEAN", sources)
    with pytest.raises(ValueError, match=r"settings\.sigmas: got None, expected it for DW"):
        jaxmeta.meta_embedding("DW", sources)
    with pytest.raises(ValueError, match=r"settings\.key: got None, expected it for LLE"):
        jaxmeta.meta_embedding("LLE", sources)
    with pytest.raises(ValueError, match=r"settings\.sigmas: got 2 entries, expected 3"):
        jaxmeta.meta_embedding("SW", sources, Settings(sigmas=(0.1, 0.2)))
    with pytest.raises(ValueError, match="rows in"):
        jaxmeta.meta_embedding("UW", (sources[0], sources[1][1:]))
    with pytest.raises(
        ValueError, match=r"sources\[0\]\.eigenvalues: got None, expected it for RIE"
    ):
        jaxmeta.meta_embedding("RIE", sources, Settings(sigmas=SIGMAS))
    with pytest.raises(ValueError, match=r"settings\.ideal: got None, expected it for exact"):
        jaxmeta.meta_embedding("exact", sources)


def built(rng):
    """Sources as `build_sources` returns them."""
    words = tuple(f"w{i}" for i in range(N))
    made = []
    for j, (k, sigma) in enumerate(zip(WIDTHS, SIGMAS, strict=True)):
        signal = rng.normal(size=(N, N)) * sigma
        values, vectors = np.linalg.eigh(signal + signal.T + 9 * np.diag(np.arange(N) < k))
        order = np.argsort(-np.abs(values))
        values, vectors = rounded(values[order]), rounded(vectors[:, order[: k + 2]])
        spectrum = Spectrum(*cast((vectors, np.abs(values[: k + 2]))))
        made.append(Source(f"s{j}", words, spectrum, values, sigma, k, k, 0.5, 0.0))
    return tuple(made)


@pytest.mark.one_leg
@pytest.mark.parametrize(
    "name",
    [
        "default",
        "SVD",
        "AAEME",
        *(name for name, w in WEIGHTINGS.items() if w.needs in ("sigma", "eigenvalues")),
    ],
)
def test_sources_go_in_as_they_are(name, rng, settings):
    """With the words, sigma, eigenvalues and alpha that they carry."""
    sources = built(rng)
    found = jaxmeta.meta_embedding(name, sources, settings._replace(sigmas=None))
    assert isinstance(found, Vectors)
    assert found.words == sources[0].words
    assert np.isfinite(found.matrix).all()
    if name in WEIGHTINGS:
        observed = [Observed(s.values, N, s.alpha, s.sigma, cast(s.eigenvalues)) for s in sources]
        direct = jaxmeta.concatenate(tuple(s.embedding for s in sources), weigh(name, observed))
        np.testing.assert_array_equal(found.matrix, direct)


@pytest.mark.one_leg
def test_sources_of_several_kinds_are_refused(rng):
    first, second, third = built(rng)
    for others in ((second._replace(alpha=0.25), third), (second.embedding, third)):
        with pytest.raises(ValueError, match="sources of several kinds"):
            jaxmeta.meta_embedding("UW", (first, *others))


@pytest.mark.one_leg
@pytest.mark.parametrize("missing", ["zero", "mean"])
def test_aligned_files_go_in_as_they_are(missing, rng):
    words = [f"w{i}" for i in range(N)]
    files = [
        Vectors(tuple(words[a:b]), rng.normal(size=(b - a, k)).astype(np.float32) + 1)
        for a, b, k in ((0, N, 4), (5, N, 3))
    ]
    both = align(files, vocabulary="union", missing=missing)
    found = jaxmeta.meta_embedding("default", both)
    assert found.words == both.words
    # Zeros stand for nothing, and must not count; means are there to be used.
    present = both.present if missing == "zero" else None
    expected = jaxmeta.meta_embedding("default", both.sources, Settings(present=present))
    np.testing.assert_array_equal(found.matrix, expected)
    plan = jaxmeta.fit("default", both)
    again = jaxmeta.apply(plan, both)
    assert again.words == both.words
    np.testing.assert_array_equal(again.matrix, expected)
    other = None if missing == "zero" else both.present
    different = jaxmeta.meta_embedding("default", both.sources, Settings(present=other))
    assert not np.allclose(found.matrix, different, atol=1e-3)
