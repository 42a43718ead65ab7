"""What noise does to a spectrum, against NumPy formulas and against draws of noise."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import scipy.integrate
import scipy.sparse
from helpers import EPS, assert_close, cast, exactly, rotation, rounded

from jaxmeta import debias, noise_std, usvt
from jaxmeta.noise import (
    bulk_noise_std,
    effective_rank,
    spiked_overlap,
    spiked_strengths,
    usvt_rank,
)
from jaxmeta.released import released_noise_std

# Square, tall and wide; sigma is exact in binary, and so are its products with the roots.
SIZES = {"square": (64, None), "tall": (64, 16), "wide": (16, 64)}
SIGMA = 0.25
sizes = pytest.mark.parametrize(("n", "m"), SIZES.values(), ids=SIZES)


def edges(n, m, sigma=SIGMA):
    """sigma sqrt n, sigma sqrt m, and the ideal value from which on noise can be told apart."""
    left, right = sigma * np.sqrt(n), sigma * np.sqrt(m or n)
    return left, right, np.sqrt(left * right)


def lifted(ideal, n, m, sigma=SIGMA):
    """Where noise takes an ideal value."""
    left, right, _ = edges(n, m, sigma)
    return np.sqrt((ideal**2 + left**2) * (ideal**2 + right**2)) / ideal


def wigner(rng, n, sigma):
    """Symmetric noise with entries of variance sigma^2."""
    z = rng.normal(size=(n, n))
    return sigma * (z + z.T) / np.sqrt(2)


# The noise of two halves.


@pytest.mark.parametrize("shape", [(6, 6), (5, 9), (9, 4)])
@pytest.mark.parametrize("kind", ["dense", "csr_matrix", "csr_array", "coo_array"])
def test_noise_std(rng, shape, kind):
    """Few entries are stored, and not the same ones in both halves."""
    first, second = (
        rounded(rng.normal(1, 1, shape) * (rng.uniform(size=shape) < 0.4)) for _ in range(2)
    )
    as_given = cast if kind == "dense" else getattr(scipy.sparse, kind)
    halves = as_given(first), as_given(second)
    expected = oracles.norm(first - second) / (2 * np.sqrt(first.size))
    assert_close(noise_std(*halves), expected, scale=expected)
    expected = 0.5 * np.std(first - second)
    assert_close(released_noise_std(*halves), expected, scale=np.abs(first - second).max())


@pytest.mark.parametrize("as_given", [cast, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_halves_that_are_the_same_have_no_noise(rng, as_given):
    half = as_given(rounded(rng.normal(size=(4, 3))))
    assert noise_std(half, half) == 0
    assert released_noise_std(half, half) == 0


@pytest.mark.one_leg
def test_more_pairs_than_an_integer_counts():
    """Of 50,000 words there are more than 2^31 pairs, and few of them are seen."""
    stored, n = np.array([3.0, -1.0, 2.0]), 50_000
    seen = scipy.sparse.csr_array((stored, ([0, 5, 9], [7, 0, 9])), shape=(n, n))
    halves = seen.astype(np.float32), 0 * seen.astype(np.float32)
    expected = 0.5 * np.sqrt(np.sum(stored**2) / n**2 - (np.sum(stored) / n**2) ** 2)
    assert_close(released_noise_std(*halves), expected, scale=expected)
    expected = 0.5 * np.sqrt(np.sum(stored**2)) / n
    assert_close(noise_std(*halves), expected, scale=expected)


def test_noise_std_recovers_sigma(rng):
    """Each half has noise of variance 2 sigma^2; the error is 1 / sqrt(2 n m), four of which."""
    sigma, shape = 0.3, (200, 150)
    ideal = rng.normal(size=shape)
    halves = [cast(ideal + np.sqrt(2) * sigma * rng.normal(size=shape)) for _ in range(2)]
    assert abs(float(noise_std(*halves)) / sigma - 1) < 4 / np.sqrt(2 * np.prod(shape))


def test_a_difference_in_the_mean_counts_in_one_form_only(rng):
    first = rounded(rng.normal(size=(20, 20)))
    halves = cast(first), cast(first + 1)
    assert_close(noise_std(*halves), 0.5, scale=np.abs(first).max())
    assert_close(released_noise_std(*halves), 0, scale=np.abs(first).max())


@pytest.mark.parametrize(("n", "m"), [(300, None), (300, 300), (400, 100), (100, 400)])
def test_noise_from_the_bulk(rng, n, m):
    """A few ideal values move the median by half their share."""
    if m is None:
        z = wigner(rng, n, 0.3)
        z[:3, :3] += 100
        values = np.sort(np.abs(np.linalg.eigvalsh(z)))[::-1]
    else:
        z = 0.3 * rng.normal(size=(n, m))
        z[:3, :3] += 100
        values = np.linalg.svd(z, compute_uv=False)
    found = float(bulk_noise_std(cast(values), n=n, m=m))
    assert abs(found / 0.3 - 1) < 0.02 + 1 / min(n, m or n)
    assert_close(bulk_noise_std(cast(4 * values), n=n, m=m), 4 * found, scale=found)


@pytest.mark.one_leg
@pytest.mark.parametrize(("n", "m"), [(7, None), (7, 7), (7, 20), (20, 7)])
def test_the_median_of_noise_is_that_of_its_law(n, m):
    """Against the law's density, integrated by SciPy."""
    values = jnp.ones(min(n, m or n))
    median = 1 / float(bulk_noise_std(values, n=n, m=m))
    ratio = min(n, m or n) / max(n, m or n)
    low, high = (1 - ratio**0.5) ** 2, (1 + ratio**0.5) ** 2

    def density(x):
        return np.sqrt(max((high - x) * (x - low), 0)) / (2 * np.pi * ratio * x)

    share, _ = scipy.integrate.quad(density, low, median**2 / max(n, m or n))
    assert abs(share - 0.5) < 1e-4


# Thresholds, and the spiked model.


@sizes
def test_usvt(rng, n, m):
    left, right, _ = edges(n, m)
    values = rounded(rng.uniform(0, 3 * (left + right), 12))
    expected = np.maximum(values - left - right, 0)
    assert_close(usvt(cast(values), sigma=SIGMA, n=n, m=m), expected, scale=values.max())
    assert usvt_rank(cast(values), sigma=SIGMA, n=n, m=m) == np.count_nonzero(expected)


@sizes
def test_debias_inverts_what_noise_does(n, m):
    _, _, least = edges(n, m)
    ideal = least * np.array([1e4, 100.0, 10.0, 3.0, 2.0, 1.5, 1.2])
    values = rounded(lifted(ideal, n, m))
    found = exactly(debias(cast(values), sigma=SIGMA, n=n, m=m))
    # An error of the noisy value grows by the slope of the inverse, at most 1 / (1 - 1 / 1.2^4).
    slope = 1 / (1 - (least / ideal) ** 4)
    assert_close(found / ideal / slope, 1 / slope, scale=1)
    assert_close(lifted(found, n, m) / values, np.ones(len(values)), scale=1)


def test_debias_of_symmetric_noise():
    """The textbook form, lambda + tau^2 / lambda."""
    tau, ideal = 2.0, np.array([64.0, 8.0, 4.0])
    found = debias(cast(ideal + tau**2 / ideal), sigma=0.25, n=64)
    assert_close(found, ideal, scale=64)


@sizes
def test_overlap(n, m):
    left, right, least = edges(n, m)
    ideal = rounded(least * np.array([100.0, 10.0, 2.0, 1.1, 0.9, 0.1, 0.0]))
    x = np.maximum(ideal, least) ** 2
    expected = (x**2 - (left * right) ** 2) / (x * (x + left**2))
    assert_close(spiked_overlap(cast(ideal), sigma=SIGMA, n=n, m=m), expected, scale=1)
    if m is None:
        tau = SIGMA * np.sqrt(n)
        short = 1 - tau**2 / np.maximum(ideal, tau) ** 2
        assert_close(spiked_overlap(cast(ideal), sigma=SIGMA, n=n), short, scale=1)


@sizes
@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0])
def test_spiked_strengths(n, m, alpha):
    left, right, _ = edges(n, m)
    values = cast(rounded((left + right) * np.array([9.0, 4.0, 2.0, 1.1, 0.9, 0.0])))
    ideal = exactly(debias(values, sigma=SIGMA, n=n, m=m))
    cosines = exactly(spiked_overlap(cast(ideal), sigma=SIGMA, n=n, m=m))
    expected = oracles.power(ideal, 2 * alpha) * cosines
    found = spiked_strengths(values, sigma=SIGMA, n=n, m=m, alpha=alpha)
    assert_close(found, expected, scale=expected.max())
    np.testing.assert_array_equal(exactly(found)[-2:], 0)


@pytest.mark.parametrize("function", [usvt, debias, spiked_overlap, usvt_rank])
def test_a_square_signal_needs_no_m(rng, function):
    values = cast(rng.uniform(0, 9, 8))
    np.testing.assert_array_equal(
        function(values, sigma=SIGMA, n=64), function(values, sigma=SIGMA, n=64, m=64)
    )


@sizes
def test_no_noise(n, m):
    values = jnp.array([3.0, 1.0, 0.0])
    np.testing.assert_array_equal(usvt(values, sigma=0.0, n=n, m=m), values)
    assert_close(debias(values, sigma=0.0, n=n, m=m), values, scale=3)
    np.testing.assert_array_equal(spiked_overlap(values, sigma=0.0, n=n, m=m), [1, 1, 0])
    assert usvt_rank(values, sigma=0.0, n=n, m=m) == 2


@sizes
def test_inside_the_noise_and_at_its_edge(n, m):
    left, right, least = edges(n, m)
    edge = left + right  # exact: all of these are small multiples of powers of two
    values = cast(edge * np.array([1.0, 0.99, 0.5, 0.0]))
    for function in (usvt, debias):
        np.testing.assert_array_equal(function(values, sigma=SIGMA, n=n, m=m), np.zeros(4))
    assert usvt_rank(values, sigma=SIGMA, n=n, m=m) == 0
    np.testing.assert_array_equal(
        spiked_overlap(cast(least * np.array([0.99, 0.5, 0.0])), sigma=SIGMA, n=n, m=m), np.zeros(3)
    )
    # Right above it the ideal value sets in at its least, with the square root of the distance.
    above = jnp.nextafter(cast(edge), jnp.inf)[None]
    found = exactly(debias(above, sigma=SIGMA, n=n, m=m))
    assert abs(found[0] - least) < 8 * np.sqrt(EPS) * edge


@sizes
@pytest.mark.parametrize("sigma", [0.0, SIGMA])
@pytest.mark.parametrize("function", [usvt, debias, spiked_overlap])
def test_gradients_are_finite_everywhere(n, m, sigma, function):
    left, right, least = edges(n, m)
    edge = cast(left + right)
    special = [0.0, least, edge, jnp.nextafter(edge, jnp.inf), edge / 2, 2 * edge]
    values = jnp.sort(jnp.array([float(x) for x in special]))[::-1]

    def total(values, sigma):
        return jnp.sum(function(values, sigma=sigma, n=n, m=m))

    by_values, by_sigma = jax.grad(total, argnums=(0, 1))(values, cast(sigma))
    assert np.isfinite(by_values).all()
    assert np.isfinite(by_sigma)


@pytest.mark.parametrize("sigma", [-0.5, np.nan])
@pytest.mark.parametrize("function", [usvt, debias, spiked_overlap])
def test_wrong_noise_that_cannot_be_seen_gives_nan(function, sigma):
    """Under jit no error can be raised for a value."""
    compiled = jax.jit(lambda values, sigma: function(values, sigma=sigma, n=16))
    assert np.isnan(compiled(jnp.array([9.0, 1.0]), cast(sigma))).all()


@pytest.mark.parametrize(("n", "m"), [(300, 150), (150, 300), (200, 200)])
@pytest.mark.parametrize("strength", [1.5, 3.0])
def test_spiked_model_against_draws(rng, n, m, strength):
    """A planted spike: within 4 standard errors of 40 draws, and 2 / n for the finite size."""
    draws, sigma = 40, 1 / np.sqrt(n)
    ideal = strength * edges(n, m, sigma)[2]
    u, v = rotation(rng, n)[:, 0], rotation(rng, m)[:, 0]
    values, cosines = [], []
    for _ in range(draws):
        noisy = ideal * np.outer(u, v) + sigma * rng.normal(size=(n, m))
        left, s, _ = np.linalg.svd(noisy, full_matrices=False)
        values.append(s[0])
        cosines.append((left[:, 0] @ u) ** 2)
    found = exactly(debias(cast(np.array(values)), sigma=sigma, n=n, m=m)) / ideal
    predicted = float(spiked_overlap(cast(np.array([ideal])), sigma=sigma, n=n, m=m)[0])
    for sample, expected in ((found, 1.0), (np.array(cosines), predicted)):
        error = sample.std(ddof=1) / np.sqrt(draws)
        assert abs(sample.mean() - expected) < 4 * error + 2 / n


def test_standard_error_of_debias(rng):
    """As the docstring has it; 60 draws know a spread to 1 / sqrt(120), three of which."""
    n, draws, ratio = 150, 60, 2.0
    sigma = 1 / np.sqrt(n)
    spike = np.zeros((n, n))
    spike[0, 0] = ratio
    top = [np.linalg.eigvalsh(spike + wigner(rng, n, sigma))[-1] for _ in range(draws)]
    found = exactly(debias(cast(np.array(top)), sigma=sigma, n=n)) / ratio
    predicted = np.sqrt(2 / n) / np.sqrt(ratio**2 - 1)
    assert abs(found.std(ddof=1) / predicted - 1) < 3 / np.sqrt(2 * draws)


@pytest.mark.parametrize("k", [1, 5, 12])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_effective_rank(k, scale):
    """As many as there are equal values, at any scale (whose fourth power no float32 holds)."""
    values = np.pad(np.full(k, scale), (0, 3))
    assert_close(effective_rank(cast(values)), k, scale=k)


def test_effective_rank_of_unequal_values(rng):
    values = rounded(rng.uniform(0, 2, 9))
    expected = np.sum(values**2) ** 2 / np.sum(values**4)
    assert_close(effective_rank(cast(values)), expected, scale=expected)
    assert 1 < expected < 9
