"""Weights that know of directions, against dense losses, NNLS and formulas; and what goes along.

That is the weights of the released code, rotations, and the selection of sources.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import scipy.linalg
import scipy.optimize
from helpers import (
    EPS,
    IN_64_BIT,
    assert_close,
    assert_trees_close,
    cast,
    exactly,
    rotation,
    rounded,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import alphas, frames, nearly, spectra

from jaxmeta import Spectrum, aligned_weights, shrinkage_weights, strength_weights
from jaxmeta.bounds import select_sources
from jaxmeta.combine import rotate_onto
from jaxmeta.noise import usvt_rank
from jaxmeta.pip import pip_matrix
from jaxmeta.released import (
    released_2020_dimension_weights,
    released_2021_dimension_weights,
    released_2021_source_weights,
    released_dimension_weights,
    released_source_weights,
)

ALPHAS = (0.25, 0.5, 1.0)


# One source.


@given(data=st.data(), alpha=alphas.filter(lambda a: a <= 1))
def test_strength_weights_minimise_the_loss(data, alpha):
    """The dense loss, against weights that differ in one dimension and in all."""
    u, ideal = data.draw(frames(6)), data.draw(spectra(6))
    q, values = data.draw(frames(4)), data.draw(spectra(4))
    strength, b = oracles.power(ideal, 2 * alpha), oracles.power(values, 2 * alpha)
    t = rounded(((q.T @ u) ** 2) @ strength)
    weights = exactly(strength_weights(cast(values), cast(t), alpha=alpha))
    whole = u * strength @ u.T

    def loss(c):
        return oracles.norm(whole - q * (c**2 * b) @ q.T)

    np.testing.assert_array_equal(weights[values == 0], 0)
    assert_close(weights**2 * b, np.where(b > 0, t, 0), scale=oracles.norm(t))
    best, rounding = loss(weights), np.sqrt(16 * EPS) * oracles.norm(strength)
    for factor in (0.0, 0.5, 0.9, 1.1, 2.0):
        assert best <= loss(factor * weights) + rounding
        for i in range(4):
            assert best <= loss(np.where(np.arange(4) == i, factor, 1) * weights) + rounding
    assert best <= loss(np.ones(4)) + rounding


def test_strengths_that_ask_for_no_weight():
    values, strengths = jnp.array([4.0, 2.0, 0.0, 0.0]), jnp.array([-1.0, 0.0, 1.0, 0.0])
    for alpha in (0.0, 0.5, 1.0):
        np.testing.assert_array_equal(strength_weights(values, strengths, alpha=alpha), np.zeros(4))
    gradients = jax.grad(lambda v, t: jnp.sum(strength_weights(v, t, alpha=0.5)), argnums=(0, 1))(
        values, strengths
    )
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_strengths_that_are_nan_are_not_taken_for_negative():
    assert np.isnan(strength_weights(jnp.ones(1), jnp.array([jnp.nan]), alpha=0.5)).all()


def debiased(values, tau):
    v = np.maximum(values, 2 * tau)
    return np.where(values > 2 * tau, (v + np.sqrt(v**2 - 4 * tau**2)) / 2, 0.0)


def overlaps(ideal, tau):
    return 1 - tau**2 / np.maximum(ideal, tau) ** 2


@pytest.mark.parametrize("alpha", ALPHAS)
def test_shrinkage_weights(alpha):
    tau, values = 2.0, rounded(np.array([100.0, 20.0, 9.0, 5.0, 4.5, 4.0, 3.0, 0.0]))
    ideal = debiased(values, tau)
    expected = np.sqrt(
        (ideal / np.where(values > 0, values, 1)) ** (2 * alpha) * overlaps(ideal, tau)
    )
    found = shrinkage_weights(cast(values), sigma=0.25, n=64, alpha=alpha)
    assert_close(found, expected, scale=1)
    np.testing.assert_array_equal(exactly(found)[-3:], 0)


def test_shrinkage_weights_of_a_rectangular_signal():
    left, right, values = 2.0, 1.0, rounded(np.array([20.0, 6.0, 4.0, 2.9]))
    found = shrinkage_weights(cast(values), sigma=0.25, n=64, m=16, alpha=0.5)
    square = np.maximum(values, left + right) ** 2 - left**2 - right**2
    x = (square + np.sqrt(square**2 - 4 * (left * right) ** 2)) / 2
    cosines = (x**2 - (left * right) ** 2) / (x * (x + left**2))
    expected = np.where(values > left + right, np.sqrt(np.sqrt(x) / values * cosines), 0)
    assert_close(found, expected, scale=1, terms=32)


def test_shrinkage_weights_without_noise():
    found = shrinkage_weights(jnp.array([3.0, 1.0, 0.0]), sigma=0.0, n=9, alpha=0.5)
    assert_close(found, [1, 1, 0], scale=1)


# Several sources that share an ideal.


def aligned_oracle(values, sigmas, n, alpha):
    """Weights by a search over all sets of positive ones, and the worst condition of a system.

    Direction by direction; sources that are too short, and dimensions inside the noise, are left
    out.
    """
    weights, condition = [np.zeros(len(v)) for v in values], 1.0
    for i in range(max(map(len, values))):
        here = [j for j, v in enumerate(values) if len(v) > i]
        mu = np.array([values[j][i] for j in here])
        sigma = np.array([sigmas[j] for j in here])
        tau = sigma * np.sqrt(n)
        own = np.array([float(debiased(v, t)) for v, t in zip(mu, tau, strict=True)])
        seen = own > 0
        if not seen.any():
            continue
        here = [j for j, s in zip(here, seen, strict=True) if s]
        mu, sigma, tau, own = mu[seen], sigma[seen], tau[seen], own[seen]
        precision = overlaps(own, tau) / sigma**2
        ideal = precision @ own / precision.sum()
        o, b = overlaps(ideal, tau), mu ** (2 * alpha)
        gram = np.outer(b * o, b * o)
        np.fill_diagonal(gram, b**2)
        h = b * o * ideal ** (2 * alpha)
        condition = max(condition, np.linalg.cond(gram / np.outer(b, b)))
        for j, square in zip(here, best_set(gram, h), strict=True):
            weights[j][i] = np.sqrt(square)
    return weights, condition


def best_set(gram, h):
    """The q >= 0 with the smallest q'Gq - 2h'q: the best solution of those on a set of unknowns."""
    least, best = 0.0, np.zeros(len(h))
    for chosen in itertools.product([False, True], repeat=len(h)):
        where = np.flatnonzero(chosen)
        q = np.zeros(len(h))
        q[where] = np.linalg.solve(gram[np.ix_(where, where)], h[where])
        value = q @ gram @ q - 2 * h @ q
        if (q >= 0).all() and value < least:
            least, best = value, q
    return best


def noisy_values(rng, ideal, sigmas, n, *, spread=0.05):
    """What sources with noise of their own see of one ideal."""
    return [
        rounded(
            np.sort(
                (ideal + sigma**2 * n / ideal) * rng.uniform(1 - spread, 1 + spread, len(ideal))
            )[::-1]
        )
        for sigma in sigmas
    ]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    "sigmas",
    [(0.5,), (0.25, 0.5), (0.25, 0.3, 0.5), (0.01, 0.3, 0.6), tuple(np.linspace(0.2, 0.6, 9))],
    ids=str,
)
def test_aligned_weights_are_the_best_of_all_sets(rng, sigmas, alpha):
    ideal, n = np.array([40.0, 20.0, 14.0, 11.0]), 64
    values = noisy_values(rng, ideal, sigmas, n)
    found = aligned_weights(cast(tuple(values)), sigmas=sigmas, n=n, alpha=alpha)
    expected, condition = aligned_oracle(values, rounded(np.array(sigmas)), n, alpha)
    for c, other in zip(found, expected, strict=True):
        # Squares, because the root of a small one has fewer digits. The closed form solves no
        # system: only the oracle, in float64, loses digits to its condition.
        assert_close(exactly(c) ** 2, other**2, scale=condition if IN_64_BIT else 4)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_one_aligned_source_is_shrunk(alpha):
    values = jnp.array([20.0, 9.0, 5.0, 4.0, 3.0, 0.0])
    (found,) = aligned_weights((values,), sigmas=(0.25,), n=64, alpha=alpha)
    assert_close(found, shrinkage_weights(values, sigma=0.25, n=64, alpha=alpha), scale=1)


@pytest.mark.parametrize("number", [2, 3, 4])
def test_equal_sources_get_equal_weights(number):
    values = jnp.array([20.0, 9.0, 5.0, 3.0])
    found = aligned_weights((values,) * number, sigmas=(0.25,) * number, n=64, alpha=0.5)
    o = overlaps(debiased(exactly(values), 2.0), 2.0)
    condition = (1 + (number - 1) * o.max() ** 2) / (1 - o.max() ** 2)
    for c in found[1:]:
        assert_close(c, found[0], scale=condition)
    # Together they do more than one of them, each less: q = o s / (1 + (N - 1) o^2) / mu.
    ideal = debiased(exactly(values), 2.0)
    expected = np.sqrt(o * ideal / (1 + (number - 1) * o**2) / exactly(values))
    assert_close(found[0], expected, scale=condition)


def test_the_order_of_aligned_sources_does_not_matter(rng):
    sigmas = (0.25, 0.4, 0.5)
    values = cast(tuple(noisy_values(rng, np.array([40.0, 20.0, 11.0]), sigmas, 64)))
    straight = aligned_weights(values, sigmas=sigmas, n=64, alpha=0.5)
    turned = aligned_weights(values[::-1], sigmas=sigmas[::-1], n=64, alpha=0.5)
    # The least 1 - o^2 is 2 * (2 / 40)^2: a condition of 3 / 0.005.
    assert_trees_close(turned[::-1], straight, scale=600)


def test_sigmas_may_be_an_array(rng):
    values = cast(tuple(noisy_values(rng, np.array([40.0, 20.0]), (0.25, 0.5), 64)))
    apart = aligned_weights(values, sigmas=(0.25, 0.5), n=64, alpha=0.5)
    array = aligned_weights(values, sigmas=jnp.array([0.25, 0.5]), n=64, alpha=0.5)
    assert_trees_close(array, apart, scale=400)  # the condition, as above


def test_aligned_sources_of_different_sizes(rng):
    """Where one source has no dimension, the other is on its own."""
    sigmas = (0.25, 0.4)
    long, short = noisy_values(rng, np.array([40.0, 20.0, 14.0, 9.0]), sigmas, 64)
    values = cast((long, short[:2]))
    found = aligned_weights(values, sigmas=sigmas, n=64, alpha=0.5)
    assert [len(c) for c in found] == [4, 2]
    together = aligned_weights(cast((long, short)), sigmas=sigmas, n=64, alpha=0.5)
    for c, other in zip(found, together, strict=True):
        assert_close(c[:2], other[:2], scale=400)  # the condition, as above
    alone = shrinkage_weights(values[0], sigma=0.25, n=64, alpha=0.5)
    assert_close(found[0][2:], alone[2:], scale=1)


def test_a_source_inside_the_noise_gets_nothing():
    """And changes nothing for the others."""
    values = jnp.array([20.0, 9.0, 5.0])
    inside = jnp.array([7.9, 5.0, 0.0])  # the edge is at 8
    found, other = aligned_weights((values, inside), sigmas=(0.25, 0.5), n=64, alpha=0.5)
    np.testing.assert_array_equal(other, np.zeros(3))
    assert_close(found, shrinkage_weights(values, sigma=0.25, n=64, alpha=0.5), scale=1)


def test_very_different_noise():
    """A source without noise, all but, needs no help; the other gets next to nothing."""
    ideal = np.array([9.0, 5.0])
    clean, noisy = ideal + 1e-6 / ideal, ideal + 4 / ideal
    found, other = aligned_weights(cast((clean, noisy)), sigmas=(0.001 / 8, 0.25), n=64, alpha=0.5)
    assert_close(found, np.ones(2), scale=1, terms=1e-6 / EPS + 64)
    assert (exactly(other) < 2e-3).all()
    assert np.isfinite(exactly(other)).all()


def test_aligned_weights_are_near_the_best_there_are():
    """Three sources of one ideal, n = 200: the loss is within 5 % of that of the oracle's NNLS."""
    n, k, alpha, sigmas = 200, 8, 0.5, np.array([0.5, 0.7, 0.9]) / np.sqrt(200)
    ideal = np.linspace(6, 2.5, k)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        vectors, values = [], []
        for sigma in sigmas:
            z = rng.normal(size=(n, n))
            noisy, u = np.linalg.eigh(
                np.diag(np.pad(ideal, (0, n - k))) + sigma * (z + z.T) / np.sqrt(2)
            )
            vectors.append(u[:, ::-1][:, :k])
            values.append(noisy[::-1][:k])
        columns = np.concatenate(vectors, axis=1) * np.concatenate(values) ** alpha
        gram = (columns.T @ columns) ** 2
        h = (columns[:k] ** 2).T @ ideal ** (2 * alpha)
        root = np.linalg.cholesky(gram)
        best, _ = scipy.optimize.nnls(root.T, np.linalg.solve(root, h))
        found = aligned_weights(cast(tuple(values)), sigmas=tuple(sigmas), n=n, alpha=alpha)
        losses = [
            np.sqrt(q @ gram @ q - 2 * h @ q + np.sum(ideal ** (4 * alpha)))
            for q in (exactly(jnp.concatenate(found)) ** 2, best)
        ]
        assert losses[1] <= losses[0] * (1 + 16 * EPS)
        assert losses[0] < 1.05 * losses[1]


# The released code: concat.py of meta-concat, lines 106 and 142. `lmdas` is the noisy spectrum and
# `myus` the thresholded one.


def released_dw(spectrum, sigma, n, k, alpha):
    lmdas, myus = spectrum, np.maximum(spectrum - 2 * sigma * np.sqrt(n), 0)
    return np.array([(lmdas[i] / myus[i]) ** alpha for i in range(k)])


def released_sw(spectra, sigmas, ks, n, alpha):
    weights, start = [], 0
    for spectrum, sigma, k in zip(spectra, sigmas, ks, strict=True):
        lmdas = spectrum[start : start + k]
        myus = np.maximum(spectrum - 2 * sigma * np.sqrt(n), 0)[:k]
        top, bottom = (
            np.sum(lmdas ** (2 * alpha) * myus ** (2 * alpha)),
            np.sum(myus ** (4 * alpha)),
        )
        weights.append(np.sqrt(top / bottom))
        start += k
    return np.array(weights)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_released_dimension_weights(alpha):
    values = rounded(np.array([30.0, 12.0, 7.0, 5.0]))
    found = exactly(released_dimension_weights(cast(values), sigma=0.25, n=64, alpha=alpha))
    assert_close(found, released_dw(values, 0.25, 64, 4, alpha), scale=found.max())
    # Upside down: no weight is below 1, and the weakest dimension has the largest.
    assert (found >= 1).all()
    assert (np.diff(found) > 0).all()


def test_released_dimension_weights_inside_the_noise():
    values = jnp.array([9.0, 4.0, 3.0])
    found = exactly(released_dimension_weights(values, sigma=0.25, n=64, alpha=0.5))
    rank = int(usvt_rank(values, sigma=0.25, n=64))
    assert rank == 1
    assert np.isfinite(found[:rank]).all()
    assert np.isinf(found[rank:]).all()


@pytest.mark.parametrize("alpha", ALPHAS)
def test_released_source_weights(rng, alpha):
    sizes, sigmas = (3, 2, 4), (0.25, 0.3, 0.2)
    values = [rounded(np.sort(rng.uniform(5, 40, 12))[::-1]) for _ in sizes]
    settings = {"n": 64, "alpha": alpha}
    found = released_source_weights(cast(tuple(values)), sizes=sizes, sigmas=sigmas, **settings)
    expected = released_sw(values, rounded(np.array(sigmas)), sizes, **settings)
    assert_close(found, expected, scale=expected.max())
    turned = released_source_weights(
        cast(tuple(values[::-1])), sizes=sizes[::-1], sigmas=sigmas[::-1], **settings
    )
    assert not np.allclose(turned[::-1], found)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_earlier_released_weights(rng, alpha):
    sizes, sigmas, n = (3, 2, 4), (0.25, 0.3, 0.2), 64
    values = [rounded(np.sort(rng.uniform(6, 40, 12))[::-1]) for _ in sizes]
    given = {"sizes": sizes, "sigmas": sigmas, "n": n, "alpha": alpha}
    found_2020 = released_2020_dimension_weights(cast(tuple(values)), **given)
    found_2021 = released_2021_dimension_weights(cast(tuple(values)), **given)
    source_2021 = released_2021_source_weights(cast(tuple(values)), **given)
    start = 0
    for j, (spectrum, k) in enumerate(zip(values, sizes, strict=True)):
        shifted = spectrum[start : start + k]
        usvt = (spectrum - 2 * rounded(np.array(sigmas))[j] * np.sqrt(n))[:k]
        expected = (shifted / usvt) ** alpha
        assert_close(found_2020[j], expected, scale=expected.max())
        expected = np.cbrt(shifted ** (2 * alpha) / usvt ** (4 * alpha))
        assert_close(found_2021[j], expected, scale=expected.max())
        expected = np.cbrt(np.sum(shifted ** (2 * alpha)) / np.sum(usvt ** (4 * alpha)))
        assert_close(source_2021[j], expected, scale=expected)
        start += k
    # The first source has no shift: there 2020 is as now.
    now = released_dimension_weights(cast(values[0]), sigma=sigmas[0], n=n, alpha=alpha)
    assert_close(found_2020[0], now[: sizes[0]], scale=float(now.max()))


def test_cube_roots_depend_on_the_scale(rng):
    values = (rounded(np.sort(rng.uniform(6, 40, 4))[::-1]),)
    small, large = (
        released_2021_dimension_weights(
            cast((scale * values[0],)), sizes=(4,), sigmas=(0.25 * scale,), n=64, alpha=0.5
        )[0]
        for scale in (1, 8)
    )
    assert_close(2 * large, small, scale=float(small.max()))  # 8^(1/3 - 2/3) = 1/2


def test_released_weights_do_not_depend_on_the_scale(rng):
    values = rounded(np.sort(rng.uniform(5, 40, 6))[::-1])
    small = released_dimension_weights(cast(values), sigma=0.25, n=64, alpha=0.5)
    large = released_dimension_weights(cast(1024 * values), sigma=256.0, n=64, alpha=0.5)
    assert_close(large, small, scale=float(small.max()))


# Rotations and the selection of sources.


def test_rotate_finds_a_rotation(rng):
    reference = rounded(rng.normal(size=(16, 4)))
    turned = rounded(reference @ rotation(rng, 4))
    assert_close(
        rotate_onto(cast(turned), cast(reference)), reference, scale=oracles.norm(reference)
    )


@pytest.mark.parametrize("k", [2, 4])
def test_rotate_changes_no_inner_product(rng, k):
    source, reference = rounded(rng.normal(size=(16, k))), rounded(rng.normal(size=(16, 4)))
    found = rotate_onto(cast(source), cast(reference))
    assert found.shape == (16, 4)
    assert_close(pip_matrix(found), source @ source.T, scale=oracles.norm(source) ** 2)


@pytest.mark.parametrize("k", [2, 4, 6])
def test_rotate_is_the_best_there_is(rng, k):
    """Against SciPy where that has it, and else the sum of singular values that no Q exceeds."""
    source, reference = rounded(rng.normal(size=(16, k))), rounded(rng.normal(size=(16, 4)))
    found = exactly(rotate_onto(cast(source), cast(reference)))
    scale = oracles.norm(source) * oracles.norm(reference)
    assert_close(
        np.sum(found * reference),
        np.linalg.svd(source.T @ reference, compute_uv=False).sum(),
        scale=scale,
    )
    if k == 4:
        q, _ = scipy.linalg.orthogonal_procrustes(source, reference)
        # The rotation is as well conditioned as the smallest singular values are large.
        least = np.linalg.svd(source.T @ reference, compute_uv=False)[-2:].sum()
        assert_close(found, source @ q, scale=scale * oracles.norm(source) / least)


def tilted(frame, angle):
    """Every column turned by `angle` to a direction of its own, outside the span of all."""
    outside = oracles.complement(frame)[:, : frame.shape[1]]
    return np.cos(angle) * frame + np.sin(angle) * outside


def test_select_sources(rng):
    """By the angle alone: neither the values nor the number of dimensions of a source matter."""
    ideal = Spectrum(rotation(rng, 16)[:, :6], np.linspace(6, 1, 6))
    angles, widths = [0.9, 0.0, 0.3], [3, 2, 4]
    sources = [
        Spectrum(tilted(ideal.vectors[:, :k], angle), rng.uniform(1, 100) * np.arange(k, 0, -1.0))
        for angle, k in zip(angles, widths, strict=True)
    ]
    for count in (1, 3):
        found = select_sources(cast(ideal), cast(tuple(sources)), count=count, alpha=0.5)
        np.testing.assert_array_equal(found, np.argsort(angles)[:count])


def test_select_sources_by_the_directional_term(rng):
    """Against the dense term of sources with directions of all kinds."""
    ideal = Spectrum(np.linalg.qr(rng.normal(size=(16, 5)))[0], np.linspace(3, 1, 5))
    vectors = [
        nearly(ideal.vectors[:, :3], rng),
        np.linalg.qr(rng.normal(size=(16, 4)))[0],
        ideal.vectors[:, [1, 0]],  # the same subspace, other directions
        np.linalg.qr(ideal.vectors[:, :2] + 0.3 * rng.normal(size=(16, 2)))[0],
    ]
    sources = tuple(Spectrum(q, np.ones(q.shape[1])) for q in vectors)
    variances = []
    for q in vectors:
        k = q.shape[1]
        p, a = ideal.vectors[:, :k], ideal.values[:k]
        variances.append(oracles.norm(p * a @ p.T - q * a @ q.T) / oracles.norm(a))
    found = select_sources(cast(ideal), cast(sources), count=4, alpha=0.5)
    np.testing.assert_array_equal(found, np.argsort(variances))


def test_select_sources_of_an_ideal_without_strength(rng):
    """All are as good; the order is that given."""
    ideal = Spectrum(rotation(rng, 16)[:, :3], np.zeros(3))
    sources = tuple(Spectrum(rotation(rng, 16)[:, :2], np.ones(2)) for _ in range(3))
    found = select_sources(cast(ideal), cast(sources), count=2, alpha=0.5)
    np.testing.assert_array_equal(found, [0, 1])
