"""Moments against sums in exact arithmetic, and spectra that keep their digits in float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, EPS, IN_64_BIT, assert_close, cast, exactly, rotation, rounded
from hypothesis import given
from hypothesis import strategies as st
from oracles import exact, inexact
from strategies import seeds

from jaxmeta import Settings, fit, moments
from jaxmeta._twofold import Twofold, add, axes, congruence, multiply, product, ratio, twofold
from jaxmeta.covariance import centred_gram, mean_of, raw_gram
from jaxmeta.weightings import Observed, weigh

pytestmark = pytest.mark.slow

WIDTHS = (2, 3, 1)


def pieces(x):
    """Numbers of twice the digits of the run, in two pieces."""
    high = np.asarray(x).astype(DTYPE)
    low = np.asarray(x, np.longdouble) - high
    return Twofold(jnp.asarray(high), jnp.asarray(low.astype(DTYPE)))


def whole(x):
    return np.asarray(x.high).astype(np.longdouble) + np.asarray(x.low)


def draw(rng, n, widths=WIDTHS, offset=0.0):
    return tuple(rounded(rng.normal(size=(n, k)) + offset) for k in widths)


@given(seed=seeds)
def test_arithmetic_of_two_pieces(seed):
    """Sums, products and quotients have about twice the digits."""
    rng = np.random.default_rng(seed)
    a, b = (
        rng.normal(size=5).astype(np.longdouble) * 2.0 ** rng.integers(-9, 9, 5) for _ in range(2)
    )
    a, b = (whole(pieces(x)) for x in (a, b))
    allowed = 16 * max(EPS**2, np.finfo(np.longdouble).eps)
    for found, expected in (
        (add(pieces(a), pieces(b)), a + b),
        (multiply(pieces(a), pieces(b)), a * b),
        (ratio(pieces(a), pieces(b)), a / b),
    ):
        scale = np.abs(a) + np.abs(b) + np.abs(expected)
        assert np.all(np.abs(whole(found) - expected) <= allowed * scale)
    assert not whole(ratio(pieces(a), twofold(jnp.zeros(5, DTYPE)))).any()


@given(seed=seeds, n=st.sampled_from([1, 256, 700]))
def test_product_has_more_digits_than_its_dtype(seed, n):
    rng = np.random.default_rng(seed)
    a, b = (rounded(rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-3, 3)) for k in (2, 3))
    found = product(*cast((a, b)))
    expected = inexact(exact(a).T @ exact(b))
    scale = np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)[None, :]
    # In float64 products are single ones.
    allowed = 8 * n**0.5 * EPS if IN_64_BIT else 4 * n**0.5 * EPS * 2.0**-14
    assert np.all(np.abs(whole(found) - expected) <= allowed * scale)


@pytest.mark.parametrize("condition", [1, 30, 1e3])
@pytest.mark.parametrize("k", [1, 2, 40])
def test_axes_of_ill_conditioned_matrices(rng, k, condition):
    """Values keep their digits though the Gram matrix squares the condition."""
    values = np.geomspace(1, 1 / condition, k)
    q = rotation(rng, k)
    gram = (q * values[None, :] ** 2) @ q.T
    found, v = axes(pieces(gram))
    expected = np.sqrt(np.linalg.eigvalsh(whole(pieces(gram)).astype(float))[::-1])
    np.testing.assert_allclose(found, expected, rtol=1e-5 if not IN_64_BIT else 1e-9)
    v = exactly(v)
    assert_close(v.T @ v, np.eye(k), scale=1, terms=64)
    assert (v[np.argmax(np.abs(v), axis=0), np.arange(k)] > 0).all()
    # They diagonalise it, as seen from each of the values.
    rest = v.T @ gram @ v / np.outer(expected, expected)
    # In float64 the Gram matrix is in one piece, and nothing is refined.
    allowed = 8 * EPS * (condition**2 if IN_64_BIT else condition)
    assert np.abs(rest - np.diag(np.diag(rest))).max() <= allowed


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_axes_of_matrices_without_full_rank(rng, rank):
    """What is 0 is 0, not rounding, and values that repeat do no harm."""
    q = rotation(rng, 6)[:, :rank]
    x = rounded(rng.normal(size=(30, rank)) @ q.T) if rank else np.zeros((30, 6))
    x = x if rank != 3 else np.linalg.qr(x[:, :3])[0] @ q.T
    values, v = axes(product(*cast((x, x))))
    expected = np.linalg.svd(x, compute_uv=False)
    assert_close(
        values, np.where(np.arange(6) < rank, expected, 0), scale=1 + expected[0], terms=64
    )
    assert not np.asarray(values)[rank:].any()
    assert np.isfinite(v).all()


@pytest.mark.one_leg
def test_derivatives_of_axes_are_finite_at_equal_values():
    def loss(x):
        values, v = axes(product(x, x))
        return jnp.sum(values) + jnp.sum((v * values[None, :]) @ v.T)

    for x in (np.eye(4)[:, :3], np.zeros((4, 3)), np.ones((4, 3))):
        assert np.isfinite(jax.grad(loss)(cast(x))).all()


@pytest.mark.one_leg
def test_congruence(rng):
    x, a, b = (rounded(rng.normal(size=s)) for s in ((50, 4), (4, 2), (4, 3)))
    found = congruence(cast(a), product(*cast((x, x))), cast(b))
    assert_close(found.value, a.T @ x.T @ x @ b, scale=50 * 16, terms=8)
    y = rounded(rng.normal(size=(50, 3)))
    found = congruence(cast(a), product(*cast((x, y))), cast(rounded(np.eye(3))))
    assert_close(found.value, a.T @ x.T @ y, scale=50 * 16, terms=8)


# Moments


def masked(rng, n):
    present = rng.uniform(size=(n, len(WIDTHS))) < 0.7
    present[:2] = True
    return present


@given(seed=seeds, on_host=st.booleans(), missing=st.booleans())
def test_sums_over_rows_that_both_have(seed, on_host, missing):
    rng = np.random.default_rng(seed)
    sources = draw(rng, 20, offset=rng.choice([0.0, 100.0]))
    present = masked(rng, 20) if missing else np.ones((20, 3), bool)
    spoilt = tuple(
        np.where(has[:, None], e, np.nan) for e, has in zip(sources, present.T, strict=True)
    )
    given_ = tuple(e.astype(DTYPE) for e in spoilt) if on_host else cast(spoilt)
    found = moments(given_, jnp.asarray(present) if missing else None)
    assert found.widths == WIDTHS
    assert float(found.count.value) == 20
    for part, unit in ((found.raw, False), (found.unit, True)):
        assert set(part) == {(i, j) for i in range(3) for j in range(i, 3)}
        rows = [e / np.linalg.norm(e, axis=1)[:, None] if unit else e for e in sources]
        for (i, j), pair in part.items():
            both = present[:, i] & present[:, j]
            x, y = rows[i][both], rows[j][both]
            assert float(pair.rows) == both.sum()
            scale = np.linalg.norm(x) * np.linalg.norm(y)
            assert_close(raw_gram(pair).value, x.T @ y, scale=scale, terms=8)
            assert_close(mean_of(pair), x.mean(axis=0), scale=np.abs(x).max(), terms=4)
            a, b = rounded(x.mean(axis=0)), rounded(y.mean(axis=0))
            found_gram = centred_gram(pair, cast((a, b))).value
            scale = np.linalg.norm(x - a) * np.linalg.norm(y - b)
            if unit:  # rows of length 1 are rounded before they are summed up
                scale += both.sum() ** 0.5 * (np.linalg.norm(x - a) + np.linalg.norm(y - b))
            assert_close(found_gram, (x - a).T @ (y - b), scale=scale, terms=16)


@pytest.mark.parametrize("cut", [1, 7, 300])
def test_moments_of_blocks_add(rng, cut):
    """In any order, and with columns far from 0, as if all rows had come at once."""
    sources, present = draw(rng, 600, offset=50.0), masked(rng, 600)
    together = moments(cast(sources), jnp.asarray(present))
    parts = [
        moments(cast(tuple(e[rows] for e in sources)), jnp.asarray(present[rows]))
        for rows in (slice(0, cut), slice(cut, 400), slice(400, 600))
    ]
    for total in ((parts[0] + parts[1]) + parts[2], parts[2] + (parts[0] + parts[1])):
        assert float(total.count.value) == 600
        for part in ("raw", "unit"):
            for key, pair in getattr(together, part).items():
                other = getattr(total, part)[key]
                assert float(pair.rows) == float(other.rows)
                scale = float(jnp.linalg.norm(raw_gram(pair).value))
                assert_close(raw_gram(other).value, raw_gram(pair).value, scale=scale, terms=4)
                about = tuple(jnp.full(k, 50, DTYPE) for k in pair.sums.high[1:, 1:].shape)
                # Beside the spread, not beside the mean.
                first, second = (centred_gram(x, about).value for x in (other, pair))
                spread = float(jnp.linalg.norm(second)) if part == "raw" else scale
                assert_close(first, second, scale=spread, terms=64)


@pytest.mark.one_leg
def test_rows_are_counted_beyond_what_a_number_of_the_dtype_can_count(rng):
    """2^24 + 1 is no float32."""
    one, many = moments(cast(draw(rng, 1))), moments(cast(draw(rng, 2)))
    for _ in range(23):
        many = many + many
    total = many + one
    assert int(total.count.high) + int(total.count.low) == 2**24 + 1
    pair = total.raw[0, 1].sums
    assert int(pair.high[0, 0]) + int(pair.low[0, 0]) == 2**24 + 1


@pytest.mark.one_leg
def test_moments_of_other_sources_do_not_add(rng):
    first, second = moments(cast(draw(rng, 5))), moments(cast(draw(rng, 5, (2, 3))))
    with pytest.raises(ValueError, match=r"other: got moments of \(2, 3\), expected the same"):
        first + second
    with pytest.raises(ValueError, match="compute both with the same sources"):
        first + moments(cast(draw(rng, 5)), parts=("raw",))
    with pytest.raises(ValueError, match="other: got moments of int"):
        first + 0
    with pytest.raises(ValueError, match="parts: got 'rows', expected one of 'raw', 'unit'"):
        moments(cast(draw(rng, 5)), parts=("rows",))


@pytest.mark.one_leg
def test_what_is_not_needed_is_not_summed_up(rng):
    found = moments(cast(draw(rng, 5)), parts=("unit",), pairs=False)
    assert not found.raw
    assert set(found.unit) == {(j, j) for j in range(3)}


@pytest.mark.one_leg
@pytest.mark.slow
@pytest.mark.parametrize("on_host", [True, False])
@pytest.mark.skipif(IN_64_BIT, reason="digits are kept in 32 bit, by host and device")
def test_a_million_rows_of_condition_1000_keep_their_digits(rng, on_host):
    """In blocks of rows far from 0: spectra and weights against float64, to 1e-5."""
    k, blocks, n = 12, 10, 100_000
    mix = (rotation(rng, k) * np.geomspace(1, 8e-4, k)[None, :]) @ rotation(rng, k)
    total, sums = None, {True: np.zeros((1 + k, 1 + k)), False: np.zeros((1 + k, 1 + k))}
    for _ in range(blocks):
        x = (rng.normal(size=(n, k)) @ mix + 0.01).astype(np.float32)
        more = moments((x,) if on_host else (jnp.asarray(x),))
        total = more if total is None else total + more
        x = x.astype(np.float64)
        for unit in (True, False):
            rows = x / np.linalg.norm(x, axis=1)[:, None] if unit else x
            rows = np.insert(rows, 0, 1, axis=1)
            sums[unit] += rows.T @ rows
    rows = n * blocks
    for unit, pair in ((True, total.unit[0, 0]), (False, total.raw[0, 0])):
        mean, gram = sums[unit][0, 1:] / rows, sums[unit][1:, 1:]
        centred = gram - rows * np.outer(mean, mean)
        values, own = (np.sqrt(np.linalg.eigvalsh(x)[::-1]) for x in (gram, centred))
        assert unit or values[0] / values[-1] > 1000
        np.testing.assert_allclose(mean_of(pair), mean, rtol=1e-5)
        np.testing.assert_allclose(axes(raw_gram(pair))[0], values, rtol=1e-5)
        found = axes(centred_gram(pair, (mean_of(pair),) * 2))[0]
        np.testing.assert_allclose(found, own, rtol=1e-5)
        if unit:  # columns of the default are axes over the root of their values
            lengths = np.linalg.norm(exactly(fit("default", total).maps[0]), axis=0)
            np.testing.assert_allclose(lengths, own**-0.5 / np.sqrt(own.sum()), rtol=1e-5)
    sigma = 1e-4
    for name in ("SW", "DW", "spiked"):
        plan = fit(name, total, Settings(sigmas=(sigma,)))
        with jax.enable_x64(True):
            (weights,) = weigh(name, [Observed(jnp.asarray(values**2), rows, 0.5, sigma)])
        lengths = np.linalg.norm(exactly(plan.maps[0]), axis=0)
        np.testing.assert_allclose(lengths, np.broadcast_to(weights, k), rtol=1e-5)


@pytest.mark.one_leg
def test_zero_rows_and_one_row(rng):
    zeros = cast((np.zeros((4, 2)), rng.normal(size=(4, 3))))
    found = moments(zeros)
    assert not np.asarray(raw_gram(found.unit[0, 0]).value).any()
    one = moments(cast(draw(rng, 1)))
    assert not np.asarray(centred_gram(one.raw[0, 0], (mean_of(one.raw[0, 0]),) * 2).value).any()


@pytest.mark.one_leg
def test_nan_shows(rng):
    first, second = draw(rng, 6, (2, 3))
    first[3, 1] = np.nan
    found = moments(cast((first, second)))
    assert np.isnan(raw_gram(found.raw[0, 0]).value).any()
    assert np.isfinite(raw_gram(found.raw[1, 1]).value).all()


@pytest.mark.one_leg
def test_blocks_of_one_size_are_compiled_once(rng, compilations):
    total = moments(cast(draw(rng, 9)))
    total = total + moments(cast(draw(rng, 9)))
    compilations.clear()
    for _ in range(3):
        total = total + moments(cast(draw(rng, 9)))
    assert not compilations
