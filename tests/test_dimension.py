"""How many dimensions to keep: curves against dense losses, rules against brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from helpers import EPS, assert_close, cast, exactly, rounded
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from strategies import WORDS, alphas, frames, spectra

from jaxmeta import (
    Spectrum,
    best_dimension,
    embed,
    paper_dimension,
    pip_curve,
    pip_loss,
    select_dimension,
)
from jaxmeta.dimension import paper_curve, simulate_curve, spiked_paper_dimension
from jaxmeta.released import released_dimension

ALPHAS = (0.0, 0.25, 0.5, 1.0)
TAU = 2.0  # sigma sqrt n, exactly
NOISE = {"sigma": 0.25, "n": 64}


def embedding(vectors, values, alpha):
    return vectors * oracles.power(values, alpha)


def dense_curve(ideal, noisy, alpha):
    whole = embedding(*ideal, alpha)
    return np.array(
        [
            oracles.pip_loss(embedding(noisy.vectors[:, :k], noisy.values[:k], alpha), whole)
            for k in range(1, len(noisy.values) + 1)
        ]
    )


def noisy_pair(rng, *, words=WORDS):
    """An ideal spectrum and that of its noisy signal."""
    values = 3 * (1.0 + np.arange(words)) ** -0.7
    noise = rng.normal(size=(words, words)) / np.sqrt(words)
    noisy, vectors = np.linalg.eigh(np.diag(values) + (noise + noise.T) / 2)
    order = np.argsort(-np.abs(noisy))
    return (
        Spectrum(np.eye(words), rounded(values)),
        Spectrum(rounded(vectors[:, order]), rounded(np.abs(noisy)[order])),
    )


@given(data=st.data(), alpha=alphas.filter(lambda a: a <= 1))
def test_pip_curve(data, alpha):
    """Against dense losses and against `pip_loss`; errors are relative to the largest loss."""
    ideal = Spectrum(data.draw(frames(8)), data.draw(spectra(8)))
    noisy = Spectrum(data.draw(frames(5)), data.draw(spectra(5)))
    curve = exactly(pip_curve(cast(ideal), cast(noisy), alpha=alpha))
    scale = sum(oracles.norm(oracles.power(values, 2 * alpha)) for _, values in (ideal, noisy))
    expected = dense_curve(ideal, noisy, alpha)
    # Frames are orthonormal up to rounding, which the curve takes for exact.
    assert_close(curve**2, expected**2, scale=scale**2, terms=64)
    whole = embed(cast(ideal), k=8, alpha=alpha)
    losses = [pip_loss(embed(cast(noisy), k=k, alpha=alpha), whole) for k in range(1, 6)]
    assert_close(curve**2, exactly(jnp.stack(losses)) ** 2, scale=scale**2, terms=64)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_curve_of_the_ideal_itself_is_its_tail(rng, alpha):
    ideal, _ = noisy_pair(rng)
    curve = exactly(pip_curve(cast(ideal), cast(ideal), alpha=alpha))
    tails = np.cumsum((ideal.values ** (4 * alpha))[::-1])[::-1]
    assert_close(curve**2, np.append(tails[1:], 0), scale=tails[0])


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("seed", range(3))
def test_best_dimension_from_true_strengths(seed, alpha):
    ideal, noisy = noisy_pair(np.random.default_rng(seed))
    strengths = ((noisy.vectors.T @ ideal.vectors) ** 2) @ ideal.values ** (2 * alpha)
    found = best_dimension(cast(noisy.values), cast(strengths), alpha=alpha)
    curve = dense_curve(ideal, noisy, alpha)
    assert found == 1 + np.argmin(curve)
    assert found == 1 + jnp.argmin(pip_curve(cast(ideal), cast(noisy), alpha=alpha))


def test_best_dimension_is_at_least_one():
    assert best_dimension(jnp.ones(3), jnp.zeros(3), alpha=0.5) == 1
    assert best_dimension(jnp.ones(3), -jnp.ones(3), alpha=0.5) == 1


def test_best_dimension_looks_beyond_one_that_harms():
    """The third dimension makes up for the second."""
    strengths = jnp.array([1.0, 0.4, 2.0])
    assert best_dimension(jnp.ones(3), strengths, alpha=0.5) == 3


def changes(ideal, values, overlaps, alpha):
    """What each dimension changes the squared loss by."""
    b = oracles.power(values, 2 * alpha)
    return b * (b - 2 * oracles.power(ideal, 2 * alpha) * overlaps)


def spiked(values, alpha, tau):
    """The same for observed values, in the spiked model."""
    above = values > 2 * tau
    v = np.where(above, values, 4 * tau)
    ideal = np.where(above, (v + np.sqrt(v**2 - 4 * tau**2)) / 2, 0.0)
    overlaps = np.where(above, 1 - tau**2 / np.where(above, ideal, 1) ** 2, 0.0)
    return changes(ideal, values, overlaps, alpha)


def recipe(values, alpha, tau):
    """The same for what the paper's recipe makes of them: USVT, then noise."""
    ideal = np.maximum(values - 2 * tau, 0)
    above = ideal > tau
    safe = np.where(above, ideal, 1.0)
    noisy = np.where(above, safe + tau**2 / safe, 2 * tau)
    return changes(ideal, noisy, np.where(above, 1 - tau**2 / safe**2, 0.0), alpha)


def random_values(seed):
    """Descending, from far above the noise to inside it."""
    rng = np.random.default_rng(seed)
    return rounded(TAU * np.sort(rng.uniform(0.5, 8, 40))[::-1])


seeds = pytest.mark.parametrize("seed", range(4))


@seeds
def test_select_dimension_at_one_half_is_a_threshold(seed):
    values = random_values(seed)
    expected = np.count_nonzero(values > 4 / np.sqrt(3) * TAU)
    assert 1 < expected < len(values)
    assert select_dimension(cast(values), alpha=0.5, **NOISE) == expected


@seeds
def test_spiked_paper_dimension_at_one_half_is_a_threshold(seed):
    values = random_values(seed)
    expected = np.count_nonzero(values > (2 + np.sqrt(3)) * TAU)
    assert 1 < expected < np.count_nonzero(values > 4 / np.sqrt(3) * TAU)
    assert spiked_paper_dimension(cast(values), alpha=0.5, **NOISE) == expected


@seeds
@pytest.mark.parametrize("alpha", [*ALPHAS, 0.8])
@pytest.mark.parametrize(
    ("rule", "steps"), [(select_dimension, spiked), (spiked_paper_dimension, recipe)]
)
def test_rules_against_brute_force(seed, alpha, rule, steps):
    values = random_values(seed)
    expected = 1 + np.argmin(np.cumsum(steps(values, alpha, TAU)))
    assert rule(cast(values), alpha=alpha, **NOISE) == expected


@pytest.mark.parametrize("rule", [select_dimension, spiked_paper_dimension, paper_dimension])
def test_rules_at_the_ends(rule):
    """All noise leaves one dimension, no noise all that are there."""
    inside = jnp.array([3.9, 2.0, 0.0])
    assert rule(inside, alpha=0.5, **NOISE) == 1
    assert rule(jnp.array([3.0, 2.0, 1.0, 0.0]), sigma=0.0, n=64, alpha=0.5) == 3
    assert rule(jnp.array([3e3, 2e3, 1e3]), alpha=0.5, **NOISE) == 3


def test_selected_dimension_is_near_the_true_one():
    """Few spikes, none near the threshold of 4 / sqrt 3, n = 200: the argmin itself."""
    n, alpha = 200, 0.5
    sigma = 1 / np.sqrt(n)
    ideal_values = np.array([8.0, 6.0, 4.5, 3.0, 1.2, 0.8])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(n, n))
        signal = np.diag(np.pad(ideal_values, (0, n - 6)))
        noisy, vectors = np.linalg.eigh(signal + sigma * (z + z.T) / np.sqrt(2))
        order = np.argsort(-np.abs(noisy))[:40]
        ideal = Spectrum(np.eye(n)[:, :6], ideal_values)
        source = Spectrum(vectors[:, order], np.abs(noisy)[order])
        curve = exactly(pip_curve(cast(ideal), cast(source), alpha=alpha))
        k = int(select_dimension(cast(source.values), sigma=sigma, n=n, alpha=alpha))
        assert k == 1 + np.argmin(curve) == 4
        by_the_paper = paper_dimension(cast(source.values), sigma=sigma, n=n, alpha=alpha)
        assert by_the_paper < k


def test_released_dimension_is_one_too_few(rng):
    curve = rng.uniform(1, 2, 9)
    curve[4] = 0.5
    assert released_dimension(cast(curve)) == 4
    assert released_dimension(jnp.array([1.0, 2.0])) == 0


# Monte Carlo.

IDEAL = np.array([8.0, 6.0, 5.0, 4.0, 3.0, 2.5])
DRAWS = 100


def simulate(alpha=0.5, seed=0, ideal=IDEAL, sigma=60**-0.5, n=60, **settings):
    return simulate_curve(
        cast(ideal), sigma=sigma, n=n, alpha=alpha, key=jax.random.key(seed), **settings
    )


def sampled(rng, alpha, draws, ideal=IDEAL, n=60):
    """As the paper has it: random directions, an SVD of the noisy signal, dense losses squared."""
    r, squares = len(ideal), []
    for _ in range(draws):
        left, right = (np.linalg.qr(rng.normal(size=(n, r)))[0] for _ in range(2))
        signal = left * ideal @ right.T
        u, s, _ = np.linalg.svd(signal + rng.normal(size=(n, n)) / np.sqrt(n))
        whole = embedding(left, ideal, alpha)
        squares.append(
            [
                oracles.pip_loss(embedding(u[:, :k], s[:k], alpha), whole) ** 2
                for k in range(1, r + 1)
            ]
        )
    squares = np.array(squares)
    mean = np.sqrt(squares.mean(axis=0))
    return mean, squares.std(axis=0, ddof=1) / np.sqrt(draws) / (2 * mean)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_simulated_curve_against_plain_simulation(rng, alpha):
    """Dense and blocked, each within 4.5 standard errors of the difference."""
    expected, error = sampled(rng, alpha, DRAWS)
    for depth in (10, 5):
        curve = simulate(alpha, draws=DRAWS, depth=depth)
        spread = np.hypot(error, exactly(curve.standard_error))
        assert (np.abs(exactly(curve.mean) - expected) < 4.5 * spread).all()
        # The errors themselves are known to 1 / sqrt(2 draws), and less with heavy tails.
        np.testing.assert_allclose(exactly(curve.standard_error), error, rtol=0.35)


def test_more_draws_have_smaller_errors():
    few, many = simulate(draws=DRAWS, depth=5), simulate(draws=9 * DRAWS, depth=5)
    ratio = exactly(few.standard_error) / exactly(many.standard_error)
    np.testing.assert_allclose(ratio, 3, rtol=0.4)


@pytest.mark.parametrize("depth", [5, 10])
def test_keys_decide(depth):
    one, again, other = (simulate(draws=DRAWS, depth=depth, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.mean, again.mean)
    np.testing.assert_array_equal(one.standard_error, again.standard_error)
    assert (np.asarray(one.mean) != np.asarray(other.mean)).all()


@pytest.mark.parametrize("depth", [1, 5, 10])
@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0])  # at 0, a rounded zero counts as much as any
def test_without_noise_the_loss_is_the_tail(alpha, depth):
    """All draws are the same; squares are compared, for the digits of a loss that vanishes."""
    ideal = np.array([4.0, 2.0, 2.0, 1.0, 0.0, 0.0])
    curve = simulate(alpha, ideal=ideal, sigma=0.0, draws=DRAWS, depth=depth)
    squares = oracles.power(ideal, 4 * alpha)
    tails = squares.sum() - np.cumsum(squares)
    assert_close(exactly(curve.mean) ** 2, tails, scale=squares.sum())
    spread = 2 * exactly(curve.mean) * exactly(curve.standard_error)
    assert_close(spread, np.zeros(6), scale=squares.sum())


def test_dimension_of_a_curve():
    curve = simulate(draws=DRAWS, ideal=np.array([8.0, 6.0, 4.0, 0.5, 0.3, 0.1]))
    assert curve.dimension == 1 + np.argmin(curve.mean)
    assert curve.dimension == 3
    assert released_dimension(curve.mean) == 2


SPIKES = np.append(np.linspace(9, 4.6, 10), np.linspace(2.9, 2.1, 10))
POWER_LAW = 9 * np.arange(1.0, 61) ** -0.3


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("values", [SPIKES, POWER_LAW], ids=["spikes", "dense"])
def test_the_papers_recipe_is_what_its_simulation_tends_to(rng, values, alpha):
    """USVT, noise, argmin, n = 60, 40 draws: to 1 % of the largest loss."""
    n, noise = 60, {"sigma": 60**-0.5, "n": 60, "alpha": alpha}
    thresholded = np.maximum(values - 2, 0)
    mean, _ = sampled(rng, alpha, 40, thresholded[thresholded > 0], n)
    curve = exactly(paper_curve(cast(values), **noise))[: len(mean)]
    np.testing.assert_allclose(curve, mean, atol=0.01 * mean.max())
    k = int(paper_dimension(cast(values), **noise))
    assert k == 1 + np.argmin(curve)
    assert mean[k - 1] < mean.min() + 0.01 * mean.max()


def test_on_dense_spectra_the_recipe_keeps_more_than_spikes_would_have_it():
    noise = {"sigma": 60**-0.5, "n": 60, "alpha": 0.5}
    assert spiked_paper_dimension(cast(SPIKES), **noise) == paper_dimension(cast(SPIKES), **noise)
    assert spiked_paper_dimension(cast(POWER_LAW), **noise) == 18
    assert paper_dimension(cast(POWER_LAW), **noise) == 60


def test_the_recipe_goes_up_to_the_rank():
    """Beyond it there is only noise in the recipe's signal, some of which looks like more."""
    values = cast(np.append(np.linspace(6, 4, 54), np.ones(6)))
    noise = {"sigma": 60**-0.5, "n": 60, "alpha": 0.5}
    assert 1 + jnp.argmin(paper_curve(values, **noise)) == 60
    assert paper_dimension(values, **noise) == 54


def free_convolution(ideal, n, ranks):
    """Values and overlaps by the definition: half-integer quantiles, in units of tau."""
    places = np.concatenate([ideal, -ideal, np.zeros(2 * (n - len(ideal)))])

    def width(x):
        def excess(v):
            return np.mean(1 / ((x - places) ** 2 + v**2)) - 1

        return brentq(excess, 1e-12, 2, xtol=1e-14) if excess(1e-12) > 0 else 0.0

    def above(x):
        v = width(x)
        angles = np.arctan2(v, x - places)
        return np.sum(angles - v * (x - places) / ((x - places) ** 2 + v**2)) / np.pi

    found = []
    for rank in ranks:
        x = brentq(lambda x, rank=rank: above(x) - rank + 0.5, 1e-9, ideal[0] + 1, xtol=1e-13)
        distance = (x - places) ** 2 + width(x) ** 2
        own = np.sum((1 / distance) * np.abs(places)) / np.sum(1 / distance)
        found.append((x + np.mean((x - places) / distance), own))
    return np.transpose(found)


def test_groups_of_values_change_the_curve_little():
    """Among 600 values, of which 256 stand alone: against all of them, each on its own."""
    n, alpha = 1000, 0.5
    ideal = 30 * np.arange(1.0, 601) ** -0.4
    values, strengths = free_convolution(ideal, n, np.arange(1, 601, 7))
    expected = values * (values - 2 * strengths)
    curve = exactly(paper_curve(cast(rounded(ideal + 2)), sigma=n**-0.5, n=n, alpha=alpha))
    rises = np.diff(curve**2, prepend=np.sum(ideal**2))[::7]
    np.testing.assert_allclose(rises, expected, atol=0.01)


def test_as_many_values_as_words():
    """There is no room for a second block then."""
    curve = simulate(n=6, sigma=0.1, draws=4)
    assert np.isfinite(curve.mean).all()
    assert (exactly(curve.standard_error) > EPS).all()
