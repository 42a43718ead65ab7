"""Strengths from the whole spectrum, against NumPy formulas and against draws of noise."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import scipy.optimize
from helpers import EPS, IN_64_BIT, assert_close, cast, exactly, rotation, rounded

from jaxmeta import ideal_strengths, rotation_invariant
from jaxmeta.noise import spiked_strengths
from jaxmeta.shrinkage import complete_spectrum, rie_strengths, rotation_invariant_rectangular


def wigner(rng, n, sigma):
    """Symmetric noise with entries of variance sigma^2."""
    z = rng.normal(size=(n, n))
    return sigma * (z + z.T) / np.sqrt(2)


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # none near 0 is left
        shifted = rotation_invariant(cast(eigenvalues + shift), sigma=0.125)
    assert_close(shifted, straight + shift, scale=abs(shift) + np.abs(eigenvalues).max())


@pytest.mark.parametrize("function", [rotation_invariant, rie_strengths, ideal_strengths])
def test_a_spectrum_without_its_small_values_is_warned_of(function, rng):
    """The leading ones alone are taken for all: their mean field is that of another signal."""
    n, sigma = 200, 0.05
    signal = np.diag(np.append(np.arange(9.0, 3.0, -1.0), np.zeros(n - 6)))
    noisy = np.linalg.eigvalsh(signal + wigner(rng, n, sigma))
    settings = {"sigma": sigma} | ({"alpha": 0.5, "size": 8} if function is ideal_strengths else {})
    function(cast(noisy), **settings)
    for most in (6, 60):
        leading = cast(noisy[np.argsort(-np.abs(noisy))[:most]])
        with pytest.warns(UserWarning, match=f"eigenvalues: got {most}, none within"):
            function(leading, **settings)
    jax.jit(lambda x: function(x, **settings))(leading)


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


@pytest.mark.parametrize("positive", [True, False])
def test_rie_strengths_are_not_negative(eigenvalues, positive):
    """The sign of the eigenvalue, unless the ideal has none below 0; never below 0."""
    found = exactly(rie_strengths(cast(eigenvalues), sigma=0.125, positive=positive))
    estimate = rie(eigenvalues, 0.125)
    signed = estimate if positive else np.sign(eigenvalues) * estimate
    assert (signed < -0.01).any()  # there is something to clip
    assert_close(found, np.maximum(signed, 0), scale=rie_scale(eigenvalues, 0.125))
    assert (found >= 0).all()
    lowest = np.argmin(eigenvalues)  # about -7
    assert (found[lowest] == 0) if positive else abs(found[lowest] - 7) < 0.5


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


@pytest.mark.parametrize("positive", [True, False], ids=["positive", "indefinite"])
def test_ideal_strengths_are_the_formula(positive):
    """With two candidates, the smallest ideal eigenvalue and 0, the density is two numbers."""
    eigenvalues, sigma, alpha = np.array([6.0, 3.0, 2.5, 0.5, -1.0, -1.5]), 0.75, 0.75
    n = len(eigenvalues)
    transform = stieltjes(eigenvalues, eigenvalues, sigma)
    centre = eigenvalues - n * sigma**2 * transform.real
    own = np.maximum(centre, 0) if positive else centre
    width = n * sigma**2 * transform.imag
    width += sigma * (1 - 1 / (n * sigma * transform.imag)) ** 3
    candidates = np.array([own.min(), 0])
    kernel = (width / transform.imag)[:, None]
    kernel = kernel / ((centre[:, None] - candidates) ** 2 + width[:, None] ** 2)
    density = scipy.optimize.minimize(
        lambda p: p.sum() - np.mean(np.log(kernel @ p)), [1, 1], bounds=[(1e-9, 2)] * 2, tol=1e-14
    ).x
    seen = kernel @ density
    strength = np.abs(candidates) ** (2 * alpha), np.abs(own) ** (2 * alpha)
    expected = kernel @ (density * strength[0]) / np.maximum(seen, 1)
    expected += np.maximum(1 - seen, 0) * strength[1]
    found = ideal_strengths(
        cast(eigenvalues), sigma=sigma, alpha=alpha, positive=positive, size=2
    ).values
    np.testing.assert_allclose(exactly(found), expected, rtol=1e-3, atol=1e-3)


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
