"""Residuals, rotations, principal angles and norms at the limits of their precision."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import scipy.linalg
from helpers import DTYPE, EPS, assert_close, cast, exactly, rotation, rounded

from jaxmeta.linalg import (
    axis_lengths,
    column_norms,
    distance_to_boundary,
    eigh,
    norm,
    power_of_two,
    principal_sines,
    procrustes,
    residual,
    row_norms,
    safe_ratio,
    safe_sqrt,
    svd,
    unit,
)

LARGEST = float(jnp.finfo(DTYPE).max)
SMALLEST = float(jnp.finfo(DTYPE).tiny)


def assert_residual_exact(c, a, b, b_low=None):
    """The error is that of the last rounding, plus eps^1.5, not eps, of the norms."""
    exact_c, exact_a, exact_b = oracles.exact(c), oracles.exact(a), oracles.exact(b)
    if b_low is not None:
        exact_b = exact_b + oracles.exact(b_low)
    expected = oracles.inexact(exact_c - exact_a @ exact_b)
    actual = exactly(residual(c, a, b, b_low))
    inner = a.shape[1]
    # Cut to (digits - log2(inner)) / 2 bits, the remainders are sqrt(4 eps inner) of the whole, and
    # there are three sums of them, of `inner` terms.
    remainder = 2 * np.sqrt(EPS * inner) * np.abs(exactly(a)).max() * np.abs(exactly(b)).max()
    allowed = 2 * EPS * (np.abs(expected) + 3 * inner * remainder)
    assert np.all(np.abs(actual - expected) <= allowed)
    return expected


@pytest.mark.parametrize(("n", "k", "m"), [(7, 1, 3), (9, 4, 4), (5, 20, 2)])
def test_residual_against_exact_arithmetic(rng, n, k, m):
    a = cast(rng.normal(size=(n, k)))
    b = cast(rng.normal(size=(k, m)))
    c = cast(exactly(a) @ exactly(b))  # so that all but the last digits cancel
    expected = assert_residual_exact(c, a, b)
    plain = exactly(c - jnp.matmul(a, b, precision="highest"))
    if k > 1:  # a single product rounds as the exact one does
        assert (
            np.abs(plain - expected).max()
            > 10 * np.abs(exactly(residual(c, a, b)) - expected).max()
        )


def test_residual_with_digits_beyond_precision(rng):
    a = cast(rng.normal(size=(9, 4)))
    q = rotation(rng, 4)
    b = cast(q)
    b_low = cast(rng.normal(size=(4, 4)) * EPS / 2)
    c = cast(exactly(a) @ (exactly(b) + exactly(b_low)))
    assert_residual_exact(c, a, b, b_low)


def test_residual_of_columns_of_different_scale(rng):
    scales = 10.0 ** np.arange(-6, 6, 3)
    a = cast(rng.normal(size=(9, 4)) * scales[::-1])
    b = cast(rng.normal(size=(4, 4)) * scales[:, None])
    assert_residual_exact(cast(exactly(a) @ exactly(b)), a, b)


def test_residual_has_the_derivatives_of_the_plain_expression(rng):
    c, a, b, b_low = (cast(rng.normal(size=s)) for s in [(6, 3), (6, 4), (4, 3), (4, 3)])
    cotangent = cast(rng.normal(size=(6, 3)))

    def plain(c, a, b, b_low):
        return c - jnp.matmul(a, b + b_low, precision="highest")

    _, pull = jax.vjp(residual, c, a, b, b_low)
    _, pull_plain = jax.vjp(plain, c, a, b, b_low)
    for actual, expected in zip(pull(cotangent), pull_plain(cotangent), strict=True):
        assert_close(actual, expected, scale=np.linalg.norm(cotangent) * np.linalg.norm(a))

    def twice(f):  # the product of a and b has a mixed second derivative
        return jax.grad(lambda a: jnp.sum(jax.grad(lambda b: jnp.sum(f(c, a, b, b_low)))(b)))(a)

    assert_close(twice(residual), twice(plain), scale=b.size)


@pytest.mark.parametrize(("m", "k"), [(4, 4), (3, 5), (1, 1)])
def test_procrustes_is_orthogonal_and_beats_other_rotations(rng, m, k):
    f, e = rng.normal(size=(12, m)), rng.normal(size=(12, k))
    q = exactly(procrustes(cast(f), cast(e)))
    assert q.shape == (m, k)
    gram = q @ q.T if m <= k else q.T @ q
    assert_close(gram, np.eye(min(m, k)), scale=1)
    product, distance = np.sum(e * (f @ q)), np.linalg.norm(e - f @ q)
    assert_close(product, np.linalg.norm(f.T @ e, "nuc"), scale=product)
    # Near the best one both are flat, so that rounding of q shows in its square only.
    for other in turned_a_little_and_a_lot(rng, q):
        assert np.sum(e * (f @ other)) <= product * (1 + 16 * EPS)
        if m <= k:  # else f @ other is not as large as f, and the two are different questions
            assert np.linalg.norm(e - f @ other) >= distance * (1 - 16 * EPS)


def turned_a_little_and_a_lot(rng, q):
    """Matrices with the orthonormal rows or columns that `q` has."""
    m, k = q.shape
    for size in [1e-3, 1e-1, 1e1]:
        for _ in range(10):
            generator = rng.normal(size=(max(m, k),) * 2) * size
            turn = scipy.linalg.expm(generator - generator.T)
            yield q @ turn if m < k else turn @ q


def test_procrustes_finds_the_rotation(rng):
    f, q = rng.normal(size=(12, 4)), rotation(rng, 4)
    condition = np.linalg.cond(f) ** 2
    assert_close(procrustes(cast(f), cast(f @ q)), q, scale=condition)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_procrustes_of_deficient_rank(rng, rank):
    f = cast(rng.normal(size=(12, rank)) @ rng.normal(size=(rank, 4)))
    q, turn = exactly(procrustes(f, f)), rotation(rng, 4)
    assert_close(q @ q.T, np.eye(4), scale=1)
    assert_close(exactly(f) @ q, f, scale=np.linalg.norm(f))
    q = exactly(procrustes(f, cast(exactly(f) @ turn)))
    assert_close(exactly(f) @ q, exactly(f) @ turn, scale=np.linalg.norm(f))


def pair_at_angles(sines, n):
    """Frames x and y along the axes, with these principal angles: hardly anything to round."""
    k = len(sines)
    x = np.eye(n)[:, :k]
    y = np.sqrt(1 - np.square(sines)) * x + sines * np.eye(n)[:, k : 2 * k]
    return x, y


TINY = 1e-10 if jnp.float64 == DTYPE else 1e-6


@pytest.mark.parametrize("sine", [1.0, 0.3, 1e-2, 1e-4, TINY])
def test_principal_sines_at_a_prescribed_angle(sine):
    x, y = pair_at_angles(np.array([sine, sine / 3]), n=8)
    # The cosine is a rounded number, and along the axes the only one.
    assert_close(principal_sines(cast(x), cast(y)), [sine, sine / 3], scale=sine)


@pytest.mark.parametrize("sine", [0.3, 1e-2, 1e-4, TINY])
def test_principal_sines_of_dense_frames(rng, sine):
    x, y = pair_at_angles(np.array([sine, sine / 3]), n=8)
    turn = rotation(rng, 8)
    x, y = cast(turn @ x @ rotation(rng, 2)), cast(turn @ y @ rotation(rng, 2))
    expected = oracles.tiny_sines(x, y)  # of the rounded frames: rounding turns them too
    # Below sqrt(eps) the error is that of `residual`, eps^1.5, and no longer falls with the sine.
    assert_close(principal_sines(x, y), expected, scale=max(sine, np.sqrt(EPS)))
    assert_close(expected, [sine, sine / 3], scale=1)


@pytest.mark.parametrize(("k", "m"), [(3, 3), (5, 2), (2, 5), (1, 8), (8, 8), (6, 6)])
def test_principal_sines_of_random_spans(rng, k, m):
    x, y = (np.linalg.qr(rng.normal(size=(8, size)))[0] for size in (k, m))
    sines = exactly(principal_sines(cast(x), cast(y)))
    assert_close(sines, oracles.principal_sines(x, y), scale=1)
    assert np.all(np.diff(sines) <= 0)
    angles = np.sort(np.sin(scipy.linalg.subspace_angles(x, y)))[::-1]
    # SciPy leaves out the right angles of what the smaller span cannot reach.
    assert_close(sines, np.append(np.ones(max(k - m, 0)), angles)[:k], scale=1)


def test_principal_sines_of_identical_and_orthogonal_spans(rng):
    q = rotation(rng, 8)
    x, inside, outside = q[:, :3], q[:, :3] @ rotation(rng, 3), q[:, 3:6]
    assert_close(principal_sines(cast(x), cast(inside)), np.zeros(3), scale=1, terms=4)
    assert_close(principal_sines(cast(x), cast(outside)), np.ones(3), scale=1)
    same = rounded(x)
    # Identical arrays: zero but for the square of what rounding makes of orthonormality.
    assert_close(principal_sines(cast(same), cast(same)), np.zeros(3), scale=np.sqrt(EPS))


@pytest.mark.parametrize("size", [LARGEST / 8, LARGEST**0.75, 1.0, SMALLEST**0.75, 4 * SMALLEST])
def test_norm_neither_overflows_nor_underflows(rng, size):
    x = rng.uniform(0.5, 1, size=(3, 4))
    assert_close(exactly(norm(cast(x * size))) / size, np.linalg.norm(x), scale=np.linalg.norm(x))


def test_norm_at_zero_and_at_nan():
    zero = jnp.zeros((2, 3))
    assert norm(zero) == 0
    np.testing.assert_array_equal(jax.grad(norm)(zero), zero)
    assert jnp.isnan(norm(zero.at[0, 1].set(jnp.nan)))
    assert jnp.isinf(norm(zero.at[0, 1].set(jnp.inf)))


def test_norm_has_the_unit_vector_for_a_gradient(rng):
    x = rng.normal(size=(3, 4))
    assert_close(jax.grad(norm)(cast(x)), x / np.linalg.norm(x), scale=1)


@pytest.mark.parametrize("decompose", [svd, eigh])
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_has_no_decomposition(rng, decompose, wrong):
    """One such number leaves nothing known; of infinity LAPACK's singular values never end."""
    x = rng.normal(size=(64, 64))
    x = x + x.T
    x[40, 40] = wrong
    for part in decompose(cast(x)):
        assert np.isnan(part).all()


def test_safe_sqrt():
    x = cast(np.array([4.0, 0.0, -1.0, np.nan, -np.inf]))
    expected = np.array([2.0, 0.0, 0.0, np.nan, np.nan])
    np.testing.assert_array_equal(safe_sqrt(x), cast(expected))
    slopes = jax.vmap(jax.grad(safe_sqrt))(x)
    np.testing.assert_array_equal(slopes, cast(np.array([0.25, 0.0, 0.0, np.nan, np.nan])))
    curvature = jax.grad(jax.grad(safe_sqrt))(jnp.zeros(()))
    assert curvature == 0


@pytest.mark.parametrize("x", [1.0, 1.5, 3e-9, LARGEST / 4, 2 * SMALLEST])
def test_power_of_two(x):
    x = float(rounded(x))
    scale = float(power_of_two(cast(x)))
    assert x / 2 < scale <= x
    assert np.frexp(scale)[0] == 0.5


@pytest.mark.parametrize("x", [0.0, np.inf, np.nan])
def test_power_of_two_where_there_is_none(x):
    assert power_of_two(cast(x)) == 1


@pytest.mark.parametrize("x", [0.99 * LARGEST, LARGEST / 2, -0.99 * LARGEST])
def test_norm_of_the_largest_numbers(x):
    """No power of two above them is finite, and the scale must be."""
    assert_close(exactly(norm(cast(np.array([x, 0.0])))) / LARGEST, abs(x) / LARGEST, scale=1)


# What modules share.


def test_row_and_column_norms(rng):
    """Each at its own scale: squares of the longest and of the shortest leave the range."""
    x = rng.normal(size=(4, 3)) * np.array([1, LARGEST**0.75, SMALLEST**0.75, 0])[:, None]
    expected = [np.linalg.norm(row / (abs(row).max() or 1)) * abs(row).max() for row in x]
    for found in jax.jit(lambda e: (row_norms(e), column_norms(e.T)))(cast(x)):
        for actual, length in zip(exactly(found), expected, strict=True):
            assert_close(actual / (length or 1), float(length > 0), scale=1)
    slope = jax.jit(jax.grad(lambda e: jnp.sum(row_norms(e))))(jnp.zeros((4, 3)))
    np.testing.assert_array_equal(slope, np.zeros((4, 3)))


def test_unit(rng):
    x = rounded(rng.normal(size=(3, 4)))
    scaled, zero, nan = (jax.jit(unit)(cast(x * c)) for c in (SMALLEST**0.75, 0.0, np.nan))
    assert_close(scaled, x / np.linalg.norm(x), scale=1)
    np.testing.assert_array_equal(zero, np.zeros((3, 4)))
    assert jnp.isnan(nan).all()
    assert jnp.isfinite(jax.jit(jax.jacobian(unit))(jnp.zeros((3, 4)))).all()


def test_safe_ratio():
    a, b = (
        cast(np.array([6.0, 1.0, 0.0, np.nan, 1.0])),
        cast(np.array([3.0, 0.0, 0.0, 0.0, np.nan])),
    )
    np.testing.assert_array_equal(safe_ratio(a, b), cast(np.array([2, 0, 0, np.nan, np.nan])))
    slopes = jax.vmap(jax.grad(safe_ratio, argnums=(0, 1)))(a[:3], b[:3])
    assert_close(slopes[0], [1 / 3, 0, 0], scale=1)
    assert_close(slopes[1], [-2 / 3, 0, 0], scale=1)


def test_axis_lengths_take_rounding_for_nothing(rng):
    q = np.linalg.qr(rng.normal(size=(9, 4)))[0]
    values = np.array([2.0, 1e-2, EPS, 0.0])
    assert_close(axis_lengths(cast(q * values)), [2.0, 1e-2, 0, 0], scale=2)
    np.testing.assert_array_equal(exactly(axis_lengths(cast(q * values)))[2:], 0)
    above = axis_lengths(cast(q * np.array([1.0, 1.0, 1.0, 16 * EPS])))
    assert_close(above[3] / (16 * EPS), 1, scale=1)


def test_distance_to_boundary():
    x = jnp.array([1.0, 2.0, 3.0])
    assert distance_to_boundary(x, jnp.array([-0.5, -4.0, 1.0])) == 0.5
    assert distance_to_boundary(x, jnp.array([-0.5, 4.0, 1.0])) == 2
    assert distance_to_boundary(x, jnp.array([0.5, 0.0, 1.0])) == jnp.inf
    both = jnp.stack([x, x]), jnp.array([[-0.5, 0.0, 0.0], [0.0, -8.0, 0.0]])
    assert distance_to_boundary(*both) == 0.25
