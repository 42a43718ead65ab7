"""Signals to spectra to embeddings and back."""

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import scipy.sparse
from helpers import DTYPE, EPS, assert_close, cast, exactly, rotation, rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import alphas, embeddings, frames, spectra

from jaxmeta import Spectrum, decompose, embed, spectrum_of, validate
from jaxmeta.spectral import power, split_by_source


def symmetric(rng, eigenvalues):
    """A symmetric matrix with these eigenvalues, rounded symmetrically."""
    q = rotation(rng, len(eigenvalues))
    signal = (q * eigenvalues) @ q.T
    return rounded((signal + signal.T) / 2)


def assert_singular(spectrum, signal):
    """Vectors and values belong to the leading part of `signal`: M M' U = U diag(values^2)."""
    u, values = exactly(spectrum.vectors), exactly(spectrum.values)
    scale = np.linalg.norm(signal)
    assert_close(u.T @ u, np.eye(values.size), scale=1)
    assert_close(signal @ signal.T @ u, u * values**2, scale=scale**2)
    expected = np.linalg.svd(signal, compute_uv=False)[: values.size]
    assert_close(values, expected, scale=scale)
    assert np.all(np.diff(values) <= 0)


def assert_signs(vectors):
    leading = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    assert np.all(leading > 0)


@pytest.mark.parametrize("rank", [None, 1, 4, 7])
def test_decompose_orders_indefinite_signals_by_magnitude(rng, rank):
    signal = symmetric(rng, np.array([-7.0, 6, 5, -4, 3, -2, 1]))
    spectrum = decompose(cast(signal), rank=rank)
    assert_singular(spectrum, signal)
    assert_close(spectrum.values, np.arange(7.0, 0, -1)[:rank], scale=np.linalg.norm(signal))
    assert_signs(exactly(spectrum.vectors))
    eigenvalues = np.array([7.0, -6, -5, 4, -3, 2, -1])[:rank] * -1
    # Vectors are eigenvectors, not merely singular vectors.
    u = exactly(spectrum.vectors)
    assert_close(signal @ u, u * eigenvalues, scale=np.linalg.norm(signal))


@pytest.mark.parametrize(("n", "m"), [(6, 4), (4, 6), (5, 5)])
@pytest.mark.parametrize("rank", [None, 2])
def test_decompose_takes_any_matrix_apart(rng, n, m, rank):
    signal = rounded(rng.normal(size=(n, m)))
    spectrum = decompose(cast(signal), rank=rank, symmetric=False)
    assert spectrum.vectors.shape == (n, rank or 4 + (n == m))
    assert_singular(spectrum, signal)
    assert_signs(exactly(spectrum.vectors))


@pytest.mark.one_leg
@pytest.mark.parametrize(("n", "m"), [(40, 25), (25, 40)])
def test_decompose_takes_a_sparse_matrix_of_any_shape_apart(rng, n, m):
    """Against the dense decomposition: leading values, and the span of their directions."""
    signal = rng.normal(size=(n, m)) * (rng.random((n, m)) < 0.3) + 2 * np.outer(
        rng.random(n) < 0.5, rng.random(m) < 0.5
    )
    sparse = scipy.sparse.coo_array(signal.astype(DTYPE))
    found, dense = (decompose(x, rank=4, symmetric=False) for x in (sparse, cast(signal)))
    assert_close(found.values, exactly(dense.values), scale=float(dense.values[0]))
    u, v = exactly(found.vectors), exactly(dense.vectors)
    assert_close(u.T @ u, np.eye(4), scale=4)
    gap = float(dense.values[3] - decompose(cast(signal), rank=5, symmetric=False).values[4])
    scale = float(dense.values[0]) ** 2 / (gap * float(dense.values[3]))
    assert_close(u @ (u.T @ v), v, scale=8 * scale)


@pytest.mark.parametrize(
    "eigenvalues", [np.ones(5), np.zeros(5), np.array([2.0, 2, -2, 1, -1]), np.eye(5)[0]]
)
def test_decompose_repeated_values(rng, eigenvalues):
    signal = symmetric(rng, eigenvalues)
    assert_singular(decompose(cast(signal)), signal)
    assert_singular(decompose(cast(signal), symmetric=False), signal)


def test_decompose_fixes_signs_of_ties():
    """The first of several entries of the largest magnitude is positive."""
    signal = cast(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    vector = exactly(decompose(signal, rank=1, symmetric=False).vectors[:, 0])
    assert vector[np.abs(vector).argmax()] > 0
    assert_close(np.abs(vector), np.full(2, np.sqrt(0.5)), scale=1)


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_decompose_says_nan_where_the_signal_is_not_symmetric(rng, size):
    signal = size * symmetric(rng, np.arange(1.0, 7))
    assert np.all(np.isfinite(decompose(cast(signal)).values))
    signal[0, 1] += 1e-3 * size
    assert np.all(np.isnan(decompose(cast(signal)).values))
    assert np.all(np.isnan(decompose(cast(signal)).vectors))


@given(e=embeddings(4), alpha=st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_spectrum_of_and_embed_keep_the_inner_products(e, alpha):
    spectrum = spectrum_of(cast(e), alpha=alpha)
    back = exactly(embed(spectrum, k=4, alpha=alpha))
    strengths = np.linalg.svd(e, compute_uv=False)
    # A value is a power of 1 / alpha, and its rounding counts alpha times when taken back.
    assert_close(back @ back.T, e @ e.T, scale=np.linalg.norm(e) ** 2)
    assert_close(oracles.power(exactly(spectrum.values), alpha), strengths, scale=np.linalg.norm(e))
    assert_signs(exactly(spectrum.vectors))


@given(vectors=frames(5), values=spectra(5), alpha=alphas)
def test_embed_scales_columns(vectors, values, alpha):
    embedding = embed(cast(Spectrum(vectors, values)), k=3, alpha=alpha)
    strength = oracles.power(values[:3], alpha)
    assert_close(embedding, vectors[:, :3] * strength, scale=strength.max())


def test_alpha_of_zero_forgets_strengths():
    spectrum = cast(Spectrum(np.eye(3), np.array([4.0, 1.0, 0.0])))
    # A dimension of zero strength is no dimension, whatever the exponent.
    np.testing.assert_array_equal(embed(spectrum, k=3, alpha=0.0), np.diag([1.0, 1.0, 0.0]))
    e = cast(np.array([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    assert np.all(np.isnan(spectrum_of(e, alpha=0.0).values))
    assert np.all(np.isfinite(spectrum_of(e, alpha=0.0).vectors))


@given(vectors=frames(5), values=spectra(3), alpha=alphas)
def test_padding_with_zeros_changes_no_inner_product(vectors, values, alpha):
    short = exactly(embed(cast(Spectrum(vectors[:, :3], values)), k=3, alpha=alpha))
    padded = exactly(embed(cast(Spectrum(vectors, np.append(values, [0, 0]))), k=5, alpha=alpha))
    np.testing.assert_array_equal(padded, np.pad(short, ((0, 0), (0, 2))))


@jax.jit
def power_and_derivatives(x, p):
    """The value, by value, by exponent, and twice: by value, by both, by exponent."""
    first, second = jax.grad(power), jax.grad(power, argnums=1)
    twice = jax.grad(first), jax.grad(first, argnums=1), jax.grad(second, argnums=1)
    return tuple(jax.vmap(f, (0, None))(x, p) for f in (power, first, second, *twice))


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.3, 1.0, 1.5, 2.0, 4.0])
def test_power_and_derivatives_at_positive_values(exponent):
    x, p = rounded(np.array([1e-3, 0.5, 1.0, 2.0, 1e3])), exponent
    expected = (
        x**p,
        p * x ** (p - 1),
        x**p * np.log(x),
        p * (p - 1) * x ** (p - 2),
        x ** (p - 1) * (1 + p * np.log(x)),
        x**p * np.log(x) ** 2,
    )
    for found, values in zip(power_and_derivatives(cast(x), cast(p)), expected, strict=True):
        for actual, value in zip(found, values, strict=True):
            assert_close(actual, value, scale=abs(value))


@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0])
def test_power_and_derivatives_at_zero(exponent):
    """The one-sided derivative where it is finite, 0 where it is not."""
    zero, p = jnp.zeros(5), cast(exponent)
    value, by_value, by_exponent, curvature, mixed, bend = (
        exactly(x)[0] for x in power_and_derivatives(zero, p)
    )
    assert value == by_exponent == bend == 0
    assert by_value == (1 if exponent == 1 else 0)
    assert curvature == (2 if exponent == 2 else 0)
    assert np.isfinite(mixed)
    slope = jax.jvp(power, (zero[0], p), (jnp.ones(()), jnp.ones(())))[1]
    assert slope == float(exponent == 1)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_power_of_what_is_no_strength_is_nan(exponent):
    assert np.all(np.isnan(power(cast(np.array([-1.0, np.nan])), exponent)))


def test_power_to_nan_is_nan():
    x = cast(np.array([0.0, 0.5, 1.0, 2.0]))
    assert np.all(np.isnan(power(x, jnp.nan)))
    spectrum = cast(Spectrum(np.eye(3), np.ones(3)))
    assert np.all(np.isnan(exactly(embed(spectrum, k=3, alpha=jnp.nan)).diagonal()))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((5,), [[5, 4, 3, 2, 1]]),
        ((2, 3), [[5, 4], [3, 2, 1]]),
        ((1, 2), [[5], [4, 3]]),
        ((4, 3), [[5, 4, 3, 2], [1, 0, 0]]),
        ((5, 1, 2), [[5, 4, 3, 2, 1], [0], [0, 0]]),
    ],
)
def test_blocks(sizes, expected):
    cut = split_by_source(cast(np.arange(5.0, 0, -1)), sizes=sizes)
    assert isinstance(cut, tuple)
    assert [block.tolist() for block in cut] == expected
    assert all(block.dtype == DTYPE for block in cut)


def test_validate_returns_what_is_right(rng):
    q = rotation(rng, 6)[:, :3]
    for values in ([3.0, 2.0, 2.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]):
        spectrum = cast(Spectrum(q, np.array(values)))
        assert validate(spectrum) is spectrum


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([3.0, np.nan, 1.0], r"spectrum\.values\[1\]: got nan, expected it finite; drop"),
        ([np.inf, 2.0, 1.0], r"spectrum\.values\[0\]: got inf, expected it finite"),
        ([3.0, 2.0, -1.0], r"spectrum\.values\[2\]: got -1\.0, .* not negative; take absolute"),
        ([3.0, 1.0, 2.0], r"spectrum\.values\[2\]: got 2\.0, .* at most the one before; sort"),
    ],
)
def test_validate_names_the_wrong_value(values, says):
    with pytest.raises(ValueError, match=says):
        validate(cast(Spectrum(np.eye(6)[:, :3], np.array(values))))


@pytest.mark.one_leg
@pytest.mark.parametrize("wrong", [1.1, np.nan])
def test_validate_names_vectors_that_are_not_orthonormal(wrong):
    vectors = np.eye(6)[:, :3]
    vectors[0, 0] = wrong
    with pytest.raises(ValueError, match=r"spectrum\.vectors: got columns off .*; use decompose"):
        validate(cast(Spectrum(vectors, np.ones(3))))


def test_validate_accepts_rounding():
    vectors = np.eye(6)[:, :3] * (1 + 10 * EPS)
    validate(cast(Spectrum(vectors, np.ones(3))))
