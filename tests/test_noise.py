"""What noise does to a spectrum, against NumPy formulas and against draws of noise."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import scipy.sparse
from helpers import EPS, IN_64_BIT, assert_close, cast, exactly, rotation, rounded

import jaxmeta
from jaxmeta import debias, ideal_strengths, noise_std, rotation_invariant, usvt
from jaxmeta.noise import effective_rank, spiked_overlap, spiked_strengths, usvt_rank
from jaxmeta.released import released_noise_std
from jaxmeta.shrinkage import complete_spectrum, rotation_invariant_rectangular

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


# The whole spectrum.


def stieltjes(points, poles, eta):
    return np.mean(1 / (points[:, None] - 1j * eta - poles[None, :]), axis=1)


def rie(eigenvalues, sigma):
    tau = sigma * np.sqrt(len(eigenvalues))
    return eigenvalues - 2 * tau**2 * stieltjes(eigenvalues, eigenvalues, sigma).real


def rie_scale(eigenvalues, sigma):
    """Rounding of an eigenvalue counts once for every eigenvalue within sigma of it."""
    near = sigma**2 / ((eigenvalues[:, None] - eigenvalues[None, :]) ** 2 + sigma**2)
    return np.abs(eigenvalues).max() * (1 + 2 * near.sum(axis=1).max())


def rie_rectangular(s, sigma, n, m):
    z = s[:, None] - 1j * sigma
    pull = 2 * sigma**2 * np.sum(z / (z**2 - s[None, :] ** 2), axis=1).real
    return s - pull - sigma**2 * abs(m - n) / s


@pytest.fixture(scope="module")
def eigenvalues():
    """Of a noisy indefinite signal; multiples of 1/64, so that shifts are exact."""
    rng = np.random.default_rng(1)
    noisy = np.diag(np.append([9.0, 6.0, -7.0, 3.0], np.zeros(56))) + wigner(rng, 60, 0.125)
    return np.round(64 * np.linalg.eigvalsh(noisy)) / 64


def test_rotation_invariant(eigenvalues):
    found = rotation_invariant(cast(eigenvalues), sigma=0.125)
    assert_close(found, rie(eigenvalues, 0.125), scale=rie_scale(eigenvalues, 0.125))


def test_rotation_invariant_in_any_order(rng, eigenvalues):
    order = rng.permutation(len(eigenvalues))
    straight = exactly(rotation_invariant(cast(eigenvalues), sigma=0.125))
    shuffled = rotation_invariant(cast(eigenvalues[order]), sigma=0.125)
    assert_close(shuffled, straight[order], scale=rie_scale(eigenvalues, 0.125))


@pytest.mark.parametrize("shift", [-16.0, 4.0])
def test_rotation_invariant_of_a_shifted_spectrum(eigenvalues, shift):
    straight = exactly(rotation_invariant(cast(eigenvalues), sigma=0.125))
    shifted = rotation_invariant(cast(eigenvalues + shift), sigma=0.125)
    assert_close(shifted, straight + shift, scale=abs(shift) + np.abs(eigenvalues).max())


def test_rotation_invariant_scales_with_the_signal(eigenvalues):
    straight = exactly(rotation_invariant(cast(eigenvalues), sigma=0.125))
    larger = rotation_invariant(cast(1024 * eigenvalues), sigma=128.0)
    np.testing.assert_array_equal(exactly(larger), 1024 * straight)


def test_rotation_invariant_by_sigma(eigenvalues):
    """Central differences in float64 are good to nine digits."""
    weights = np.cos(np.arange(len(eigenvalues)))

    def total(sigma):
        return jnp.dot(cast(weights), rotation_invariant(cast(eigenvalues), sigma=sigma))

    step = 1e-6
    ends = (weights @ rie(eigenvalues, 0.125 + s * step) for s in (1, -1))
    expected = float(np.subtract(*ends)) / (2 * step)
    # The derivative is of the order of what is taken away, divided by sigma, term by term.
    scale = np.sum(np.abs(eigenvalues - rie(eigenvalues, 0.125))) / 0.125 + rie_scale(
        eigenvalues, 0.125
    )
    slope = float(jax.grad(total)(cast(0.125)))
    assert abs(slope - expected) < 64 * EPS * scale + 1e-8 * scale


@pytest.mark.parametrize(("n", "m"), [(30, 50), (50, 30), (30, 30)])
def test_rotation_invariant_rectangular(rng, n, m):
    sigma, r = 0.125, min(n, m)
    noisy = sigma * rng.normal(size=(n, m))
    noisy[np.arange(4), np.arange(4)] += [9, 6, 3, 2]
    values = rounded(np.linalg.svd(noisy, compute_uv=False))
    found = rotation_invariant_rectangular(cast(values), sigma=sigma, n=n, m=m)
    both = np.append(values, -values)
    scale = rie_scale(both, sigma) + sigma**2 * abs(m - n) / values[-1]
    assert_close(found, rie_rectangular(values, sigma, n, m), scale=scale)
    if n == m:
        # The symmetric form for [[0, M], [M', 0]], in which noise fills half of the entries.
        symmetrised = values - 2 * sigma**2 * r * stieltjes(values, both, sigma).real
        assert_close(found, symmetrised, scale=scale)


def test_rotation_invariant_rectangular_of_a_rank_deficient_signal():
    values = jnp.array([4.0, 2.0, 0.0])
    out = exactly(rotation_invariant_rectangular(values, sigma=0.5, n=3, m=7))
    assert np.isfinite(out).all()
    assert_close(out[-1], 0, scale=4)


@pytest.mark.parametrize(("n", "m"), [(200, 120), (120, 200), (150, 150)])
def test_rotation_invariant_rectangular_against_the_oracle(rng, n, m):
    """The estimate of M, against the best one with these directions: 3 % in the error."""
    r = min(n, m)
    ideal = 4 * (1 + np.arange(r)) ** -0.5
    sigma = 1 / np.sqrt(n)
    signal = np.eye(n, r) * ideal @ rotation(rng, m)[:r]
    u, s, vt = np.linalg.svd(signal + sigma * rng.normal(size=(n, m)), full_matrices=False)
    best = np.einsum("ai,ab,ib->i", u, signal, vt)
    found = exactly(rotation_invariant_rectangular(cast(s), sigma=sigma, n=n, m=m))
    least = oracles.norm(signal) ** 2 - oracles.norm(best) ** 2
    assert np.sqrt(1 + oracles.norm(found - best) ** 2 / least) < 1.03


class Draw:
    """A power-law signal with and without noise, and the strengths of the noisy directions."""

    def __init__(self, seed, *, positive, n=300):
        rng = np.random.default_rng(seed)
        self.sigma = 1 / np.sqrt(n)
        self.ideal = 8 * (1 + np.arange(n)) ** -0.5
        if not positive:
            self.ideal *= rng.choice([-1, 1], n)
        self.noisy, self.vectors = np.linalg.eigh(np.diag(self.ideal) + wigner(rng, n, self.sigma))

    def oracle(self, alpha):
        return (self.vectors**2).T @ np.abs(self.ideal) ** (2 * alpha)

    def ratio(self, strengths, alpha):
        """PIP loss with weights from `strengths`, relative to that with the best weights."""
        best, found = self.oracle(alpha), np.maximum(exactly(strengths), 0)
        least = np.sum(np.abs(self.ideal) ** (4 * alpha)) - np.sum(best**2)
        return np.sqrt(1 + np.sum((found - best) ** 2) / least)


SEEDS = (0, 1)
SIZE = 128  # candidates for an ideal eigenvalue: enough at n = 300, and much faster than 512


@pytest.mark.parametrize("positive", [True, False], ids=["positive", "indefinite"])
@pytest.mark.parametrize(("alpha", "bound"), [(0.25, 1.15), (0.5, 1.05), (1.0, 1.05)])
@pytest.mark.parametrize("seed", SEEDS)
def test_ideal_strengths_against_the_oracle(seed, alpha, bound, positive):
    """At n = 300 the loss is within 5 % of the smallest there is; alpha = 1/4 is harder."""
    draw = Draw(seed, positive=positive)
    found = ideal_strengths(
        cast(draw.noisy), sigma=draw.sigma, alpha=alpha, positive=positive, size=SIZE
    )
    assert found.values.shape == draw.noisy.shape
    assert found.residual < 1e-4
    assert (exactly(found.values) >= 0).all()
    assert draw.ratio(found.values, alpha) < bound
    # Better than what holds where few values stand out, which here they do not.
    spiked = spiked_strengths(cast(np.abs(draw.noisy)), sigma=draw.sigma, n=300, alpha=alpha)
    assert draw.ratio(found.values, alpha) < draw.ratio(spiked, alpha)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_estimators_of_the_strengths_of_a_positive_signal(seed):
    """At alpha = 1/2 both are within 5 % of the smallest loss, and of each other."""
    draw = Draw(seed, positive=True)
    direct = draw.ratio(rotation_invariant(cast(draw.noisy), sigma=draw.sigma), 0.5)
    found = ideal_strengths(cast(draw.noisy), sigma=draw.sigma, alpha=0.5, positive=True, size=SIZE)
    assert direct < 1.05
    assert abs(draw.ratio(found.values, 0.5) / direct - 1) < 0.05


def test_ideal_strengths_in_any_order(rng):
    """The density is found by an iteration that stops at a tolerance, not at eps."""
    draw = Draw(0, positive=False)
    order = rng.permutation(len(draw.noisy))
    straight, shuffled = (
        exactly(ideal_strengths(cast(x), sigma=draw.sigma, alpha=0.5, size=SIZE).values)
        for x in (draw.noisy, draw.noisy[order])
    )
    tolerance = 1e-6 if IN_64_BIT else 1e-2
    np.testing.assert_allclose(shuffled, straight[order], rtol=tolerance, atol=tolerance)


def test_ideal_strengths_of_a_mirrored_spectrum():
    """|M| does not know the sign of M."""
    draw = Draw(1, positive=False)
    straight, mirrored = (
        exactly(ideal_strengths(cast(x), sigma=draw.sigma, alpha=0.5, size=SIZE).values)
        for x in (draw.noisy, -draw.noisy)
    )
    assert np.max(np.abs(straight - mirrored)) < 0.02 * straight.max()


def test_ideal_strengths_of_isolated_values(rng):
    """Far above the noise a direction is the ideal one: t = lambda^(2 alpha) (1 - tau^2/lambda^2).

    The fluctuation of a value is sigma sqrt 2, of which 5 are allowed.
    """
    n, spikes = 200, np.array([100.0, 60.0, -80.0])
    sigma = 1 / np.sqrt(n)
    signal = np.diag(np.append(spikes, np.zeros(n - 3)))
    noisy = np.linalg.eigvalsh(signal + wigner(rng, n, sigma))
    found = exactly(ideal_strengths(cast(noisy), sigma=sigma, alpha=0.5, size=SIZE).values)
    expected = np.abs(spikes) * (1 - 1 / spikes**2)
    order = np.argsort(-np.abs(noisy))[:3]
    np.testing.assert_allclose(
        np.sort(found[order]), np.sort(expected), atol=5 * np.sqrt(2) * sigma
    )


@pytest.mark.parametrize("top", [20, 60])
def test_complete_spectrum(rng, top):
    n, sigma = 120, 1 / np.sqrt(120)
    signal = np.diag(np.append([9.0, -6.0, 5.0, 4.0], np.zeros(n - 4)))
    noisy = np.linalg.eigvalsh(signal + wigner(rng, n, sigma))
    noisy = rounded(noisy[np.argsort(-np.abs(noisy))])
    trace, square_norm = noisy.sum(), (noisy**2).sum()
    found = exactly(
        complete_spectrum(cast(noisy[:top]), n=n, trace=float(trace), square_norm=square_norm)
    )
    assert found.shape == (n,)
    np.testing.assert_array_equal(found[:top], noisy[:top])
    rest = found[top:]
    assert (np.diff(rest) >= 0).all()
    assert (np.abs(rest) <= np.abs(noisy[top - 1]) * (1 + 16 * EPS)).all()
    # The rest is symmetric about its mean, so the trace is exact; quantiles have less spread than
    # what they are quantiles of, by a few parts in their number.
    assert_close(found.sum(), trace, scale=n * np.abs(noisy).max())
    others = (noisy[top:] ** 2).sum()
    assert abs((rest**2).sum() - others) < 4 / (n - top) * others


def test_complete_spectrum_is_enough_for_the_leading_values(rng):
    """RIE of the leading values, from them and two moments: within 2 % of the noise scale."""
    n, top = 300, 40
    sigma = 1 / np.sqrt(n)
    signal = np.diag(np.append(np.linspace(10, 3, 10), np.zeros(n - 10)))
    noisy = np.linalg.eigvalsh(signal + wigner(rng, n, sigma))
    noisy = noisy[np.argsort(-np.abs(noisy))]
    made_up = complete_spectrum(
        cast(noisy[:top]), n=n, trace=float(noisy.sum()), square_norm=float((noisy**2).sum())
    )
    whole = exactly(rotation_invariant(cast(noisy), sigma=sigma))[:10]
    found = exactly(rotation_invariant(made_up, sigma=sigma))[:10]
    assert np.abs(found - whole).max() < 0.02


def test_complete_spectrum_with_nothing_left(rng):
    """Moments that the leading values use up leave equal values, up to rounding of the moments."""
    top = rounded(np.sort(rng.uniform(1, 2, 5))[::-1])
    found = exactly(
        complete_spectrum(cast(top), n=9, trace=float(top.sum()), square_norm=float((top**2).sum()))
    )
    assert np.isfinite(found).all()
    assert np.abs(found[5:]).max() < 8 * np.sqrt(EPS) * oracles.norm(top)


def test_strengths_have_names():
    found = jaxmeta.shrinkage.Strengths(jnp.ones(2), jnp.zeros(()))
    assert found._fields == ("values", "residual")
