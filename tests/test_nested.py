"""Noise from nested parts, against draws whose variance and profile are known."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import jaxmeta.eigen
from jaxmeta import noise_std
from jaxmeta.nested import FLOOR, equal_rows, nested_noise, semicircle_distance

pytestmark = pytest.mark.one_leg  # on the host, in float64 but for the dtype of the result


def levels_of(rng, n, growth, profile=None, depth=3, kind=np.asarray):
    """Signals of parts with variance 1 in the halves, and 1 / growth more at each level."""
    profile = np.ones(n) if profile is None else profile
    return [
        [kind(growth ** (-level / 2) * symmetric(rng, n) * np.outer(profile, profile))
         for _ in range(2 ** (level + 1))]
        for level in range(depth)
    ]  # fmt: skip


def symmetric(rng, n):
    z = rng.normal(size=(n, n))
    return np.triu(z) + np.triu(z, 1).T


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_array])
@pytest.mark.parametrize("growth", [0.5, 0.8, 1.1])
def test_variance_is_extrapolated(rng, growth, kind):
    n = 150
    noise = nested_noise(levels_of(rng, n, growth, kind=kind))
    # 3 log v_1 - 3 log v_2 + log v_3, each from 1, 2 and 4 pairs of n (n + 1) / 2 free entries.
    error = np.sqrt(2 / (n * (n + 1) / 2) * (9 + 9 / 2 + 1 / 4))
    assert abs(np.log(noise.sigma**2 / growth)) < 4 * error
    assert abs(np.log(noise.growth[0] / growth)) < 4 * error
    np.testing.assert_allclose(noise.growth[1:], growth, rtol=0.1)
    # The error is estimated from the three degrees of freedom of few parts.
    assert 0.1 < noise.standard_error / (noise.sigma * error / 2) < 3


def test_a_growth_that_changes_is_followed(rng):
    """Variances of 1, 2, 3: the ratios fall by the same factor from level to level."""
    signals = levels_of(rng, 200, 1.0)
    scaled = [[x * v**0.5 for x in level] for level, v in zip(signals, (1, 2, 3), strict=True)]
    assert abs(float(nested_noise(scaled).sigma) ** 2 / (3 / 8) - 1) < 0.15


def test_halves_alone_are_the_papers(rng):
    first, second = levels_of(rng, 20, 0.5, depth=1)[0]
    noise = nested_noise([(first, second)])
    halves = noise_std(jnp.asarray(first), jnp.asarray(second))
    np.testing.assert_allclose(noise.sigma, halves, rtol=1e-6)
    assert np.isnan(noise.standard_error)
    np.testing.assert_allclose(noise.growth, [0.5])


def test_generators_are_read_two_at_a_time(rng):
    held = []

    def signals(number):
        for _ in range(number):
            held.append(1)
            yield symmetric(rng, 5)

    assert nested_noise([signals(2), signals(4)]).sigma > 0
    assert len(held) == 6


def test_no_noise(rng):
    same = symmetric(rng, 6)
    noise = nested_noise([[same] * 2, [same] * 4])
    assert noise.sigma == 0
    np.testing.assert_array_equal(noise.scales, 1)
    np.testing.assert_array_equal(noise.growth, 0)


@pytest.mark.parametrize("as_given", [np.asarray, scipy.sparse.csr_array])
def test_scales_make_rows_equal(rng, as_given):
    variances = np.abs(symmetric(rng, 30)) * np.outer(*2 * [np.geomspace(1e-3, 1e3, 30)])
    variances[rng.uniform(size=(30, 30)) < 0.3] = 0
    variances = variances + variances.T
    scales, residual = equal_rows(as_given(variances))
    squares = np.asarray(scales, float) ** 2
    mixed = (1 - FLOOR) * variances + FLOOR * variances.mean()
    rows = squares * (mixed @ squares) / 30
    np.testing.assert_allclose(rows, variances.mean(), rtol=1e-5)
    assert residual < 1e-14


def test_words_that_never_vary(rng):
    variances = np.abs(symmetric(rng, 8))
    variances[:3] = variances[:, :3] = 0
    scales, residual = equal_rows(variances)
    assert np.isfinite(scales).all()
    assert residual < 1e-14
    assert min(scales[:3]) > max(scales[3:])


@hypothesis.given(st.integers(0, 2**32 - 1), st.sampled_from([1e-12, 1.0, 1e12]))
def test_scales_of_permuted_words_are_permuted(seed, unit):
    rng = np.random.default_rng(seed)
    variances = unit * np.abs(symmetric(rng, 9)) * np.outer(*2 * [rng.uniform(0.1, 3, 9)])
    order = rng.permutation(9)
    plain, permuted = equal_rows(variances).scales, equal_rows(variances[order][:, order]).scales
    np.testing.assert_allclose(permuted, plain[order], rtol=1e-6)


@hypothesis.given(st.integers(1, 12), st.floats(1e-9, 1e9))
def test_equal_profiles_need_no_scales(n, value):
    np.testing.assert_allclose(equal_rows(np.full((n, n), value)).scales, 1, rtol=1e-6)


def test_what_is_wrong_with_levels(rejected):
    one, two = np.eye(2), np.eye(3)
    rejected("levels: got none", nested_noise, [])
    rejected("got an odd number of signals", nested_noise, [[one] * 3])
    rejected(r"levels\[1\]: got 2 signals, expected 4", nested_noise, [[one] * 2] * 2)
    rejected(r"levels\[0\]: got shapes .2, 2. and .3, 3.", nested_noise, [[one, two]])
    rejected("square ones", nested_noise, [[np.ones((2, 3))] * 2])
    with pytest.raises(TypeError, match="a sparse and a dense"):
        nested_noise([[one, scipy.sparse.csr_array(one)]])
    for wrong in (-one, np.nan * one):
        rejected("variances: got numbers that are none, expected finite", equal_rows, wrong)
    rejected("steps: got 0", equal_rows, one, steps=0)


def test_distance_to_the_semicircle(rng):
    n, sigma = 300, 0.3
    values = np.linalg.eigvalsh(sigma * symmetric(rng, n))
    assert semicircle_distance(values, sigma=sigma) < 3 / n
    # Half of the width: the gap is largest where one has all of its half and the other has not.
    at = 0.5
    gap = 0.5 - (at * np.sqrt(1 - at**2) + np.arcsin(at)) / np.pi
    assert abs(semicircle_distance(values, sigma=2 * sigma) - gap) < 0.02
    twice = semicircle_distance(values[::2], sigma=sigma, counts=np.full(n // 2, 2.0))
    assert twice < 6 / n
    heteroscedastic = np.linalg.eigvalsh(
        symmetric(rng, n) * np.outer(*2 * [np.geomspace(0.2, 3, n)])
    )
    rms = np.sqrt(np.mean(heteroscedastic**2) / n)
    assert semicircle_distance(heteroscedastic, sigma=rms) > 0.1


def test_a_density_is_as_far_from_the_law_as_all_eigenvalues(rng, monkeypatch):
    """Points of the density stand in groups, which are no steps of the share."""
    monkeypatch.setattr(jaxmeta.eigen, "DENSE", 100)
    n = 1500
    z = symmetric(rng, n).astype(np.float32)
    for scales in (np.ones(n), np.linspace(0.3, 1.5, n)):
        noise = (z * np.outer(scales, scales)).astype(np.float32)
        sigma = noise.std()
        exact = semicircle_distance(np.linalg.eigvalsh(noise), sigma=sigma)
        multiply = jaxmeta.eigen.multiply_by(noise)
        found = jaxmeta.eigen.eigenvalue_density(
            multiply, n=n, key=jax.random.key(0), dtype=jnp.float32
        )
        assert len(found.points) < n
        by_density = semicircle_distance(found.points, sigma=sigma, counts=found.counts)
        assert abs(by_density - exact) < 0.01
