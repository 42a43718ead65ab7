"""Leading eigenpairs against a full decomposition, and the density of all eigenvalues.

Constants of the module are lowered, so that small matrices go through the loop of large ones.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from helpers import DTYPE, EPS, IN_64_BIT, assert_close, cast, exactly, rotation, rounded
from jax import export

from jaxmeta import decompose, eigen, spectral, validate
from jaxmeta.eigen import eigenvalue_density, leading_eigenpairs, multiply_by

pytestmark = pytest.mark.slow

N = 403  # a multiple of nothing; all cases have this size, so that programs compile once
RANK = N // 8  # the most that goes through the loop
KEY = jax.random.key(0)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(eigen, "DENSE", 64)
    monkeypatch.setattr(spectral, "DENSE", 64)
    monkeypatch.setattr(eigen, "SURVEY", 4)


def symmetric(rng, eigenvalues):
    """A symmetric matrix with these eigenvalues."""
    q = rotation(rng, len(eigenvalues))
    matrix = (q * eigenvalues) @ q.T
    return (matrix + matrix.T) / 2


def wigner(rng, n=N):
    z = rng.normal(size=(n, n))
    return (z + z.T) / 2**0.5


def noisy(rng, n=N):
    """A power law of both signs that sinks into the bulk of noise."""
    return np.diag(100 * np.arange(1, n + 1.0) ** -0.5 * rng.choice([-1, 1], n)) + wigner(rng, n)


def block_diagonal(rng):
    matrix = np.zeros((N, N))
    matrix[:150, :150], matrix[150:, 150:] = noisy(rng, 150), wigner(rng, N - 150)
    return matrix


def low_rank(rng):
    return symmetric(rng, np.append(np.linspace(-2, 3, 20), np.zeros(N - 20)))


def repeated(rng):
    heads = [np.full(32, -3.0), np.full(10, 2.5), np.full(32, 2.0)]
    return symmetric(rng, np.concatenate([*heads, np.linspace(-0.5, 0.5, N - 74)]))


def dominated(rng):
    """The first eigenvalue is 10,000 times the next, as of a log-count signal."""
    tail = np.arange(1.0, N) ** -0.5 * rng.choice([-1, 1], N - 1)
    return symmetric(rng, np.append(1e4, tail))


CASES = {
    "noisy": (noisy, RANK),
    "noisy, one": (noisy, 1),
    "noise alone": (wigner, RANK),
    "positive definite": (lambda rng: symmetric(rng, np.arange(1.0, N + 1) ** -1), RANK),
    "repeated": (repeated, RANK),
    "low rank": (low_rank, RANK),
    "zero": (lambda _: np.zeros((N, N)), RANK),
    "identity": (lambda _: np.eye(N), RANK),
    "1 and -1": (lambda rng: symmetric(rng, rng.choice([-1.0, 1.0], N)), RANK),
    "huge range": (
        lambda rng: symmetric(rng, np.logspace(6, -6, N) * rng.choice([-1, 1], N)),
        RANK,
    ),
    "dominated": (dominated, RANK),
    "block diagonal": (block_diagonal, RANK),
}
cases = pytest.mark.parametrize(("make", "rank"), CASES.values(), ids=CASES)


class Counted:
    """Multiplication by a matrix that notes how many columns come."""

    def __init__(self, matrix):
        self.multiply, self.columns = multiply_by(matrix), []

    def __call__(self, block):
        self.columns.append(block.shape[1])
        return self.multiply(block)


def by_magnitude(values):
    return values[np.argsort(-np.abs(values), kind="stable")]


def eigenvalues_of(matrix):
    return by_magnitude(np.linalg.eigvalsh(matrix))


def find(matrix, rank, tolerance=1e-3, key=KEY):
    """Eigenpairs of a NumPy matrix, and how many columns it was multiplied with at a time."""
    counted = Counted(cast(matrix))
    found = leading_eigenpairs(
        counted, n=len(matrix), rank=rank, key=key, tolerance=tolerance, dtype=DTYPE
    )
    return found, counted.columns


def assert_leading(found, matrix, rank, tolerance=1e-3, truth=None):
    """Pairs, residuals, density and spectrum are those of `matrix`, which is exact in DTYPE."""
    n = len(matrix)
    truth = eigenvalues_of(matrix)[:rank] if truth is None else truth
    assert found.values.shape == found.residuals.shape == (rank,)
    assert found.vectors.shape == (n, rank)
    assert {x.dtype for x in (*found[:3], *found.density)} == {DTYPE}
    values, u = exactly(found.values), exactly(found.vectors)
    rounding = 10 * EPS * abs(truth[0])
    # The error of a value is of the order of the square of its residual.
    allowed = 4 * (tolerance**2 * np.abs(truth) + rounding)
    assert np.all(np.diff(np.abs(values)) <= 0)
    assert np.all(np.abs(np.abs(values) - np.abs(truth)) <= allowed)
    # Signs: where two of both signs are next to each other, either may come first.
    signed = np.linalg.eigvalsh(matrix)
    assert np.all(np.abs(values[:, None] - signed).min(axis=1) <= allowed)
    assert_close(u.T @ u, np.eye(rank), scale=1, terms=64)
    residuals = np.linalg.norm(matrix @ u - u * values, axis=0)
    assert_close(found.residuals * np.abs(found.values), residuals, scale=abs(truth[0]), terms=8)
    assert np.all(residuals <= 1.01 * np.maximum(tolerance * np.abs(values), rounding))
    assert_close(jnp.sum(found.density.counts), n, scale=n)
    spectrum = found.spectrum
    assert spectrum.shape == (n,)
    np.testing.assert_array_equal(spectrum[:rank], found.values)
    assert np.all(np.diff(np.abs(spectrum)) <= 0)


@cases
def test_finds_leading_eigenpairs(rng, make, rank):
    matrix = rounded(make(rng))
    found, columns = find(matrix, rank)
    assert_leading(found, matrix, rank)
    assert found.products == sum(columns)
    assert N not in columns, "all eigenpairs at once: the loop has not converged"


@pytest.mark.parametrize("exponent", [-90, 60])
def test_any_unit_gives_the_same_bits(rng, exponent):
    """Squares of residuals would be 0 there, and any pair a good one, or infinite."""
    matrix = rounded(noisy(rng))
    first, second = (find(matrix * 2.0**e, RANK)[0] for e in (0, exponent))
    np.testing.assert_array_equal(second.values, np.ldexp(first.values, exponent))
    for found, expected in zip(second[1:3], first[1:3], strict=True):
        np.testing.assert_array_equal(found, expected)


def test_low_rank_beyond_the_survey(rng, monkeypatch):
    """Every pair of the survey is found, and still more are asked for."""
    monkeypatch.setattr(eigen, "SURVEY", 1)
    matrix = rounded(low_rank(rng))
    assert_leading(find(matrix, RANK)[0], matrix, RANK)


def test_tighter_tolerance(rng):
    tolerance = 1e-6 if IN_64_BIT else 1e-5
    matrix = rounded(noisy(rng))
    found, columns = find(matrix, RANK, tolerance)
    assert_leading(found, matrix, RANK, tolerance)
    assert found.products == sum(columns) > find(matrix, RANK)[0].products


def test_all_at_once_where_the_basis_would_be_everything(rng):
    matrix = rounded(wigner(rng, 100))
    tolerance = 100 * EPS
    found, columns = find(matrix, 12, tolerance)
    assert_leading(found, matrix, 12, tolerance)
    assert columns[-2:] == [100, 12]
    assert found.products == sum(columns)


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (64, 1), (64, 64)])
def test_small_matrices_are_exact(rng, n, rank):
    matrix = rounded(noisy(rng, n))
    found, columns = find(matrix, rank)
    assert_leading(found, matrix, rank, tolerance=EPS)
    assert found.products == sum(columns) == n + rank
    assert_close(found.spectrum, eigenvalues_of(matrix), scale=np.linalg.norm(matrix))
    np.testing.assert_array_equal(found.density.counts, np.ones(n))


def test_same_key_same_result(rng):
    matrix = rounded(noisy(rng))
    first, second = (find(matrix, 20)[0] for _ in range(2))
    jax.tree.map(np.testing.assert_array_equal, first, second)
    other, _ = find(matrix, 20, key=jax.random.key(1))
    assert np.any(np.asarray(first.vectors) != np.asarray(other.vectors))
    assert_leading(other, matrix, 20)


def test_sparse_and_dense_agree(rng):
    half = scipy.sparse.random_array((N, N), density=0.02, rng=rng)
    sparse = scipy.sparse.csr_array((half + half.T).astype(DTYPE))
    matrix, x = exactly(sparse.toarray()), rounded(rng.normal(size=(N, 3)))
    forms = sparse, sparse.tocsc(), sparse.tocoo(), scipy.sparse.csr_matrix(sparse), cast(matrix)
    for form in forms:
        assert_close(multiply_by(form)(cast(x)), matrix @ x, scale=np.linalg.norm(matrix) * 3)
    found = leading_eigenpairs(multiply_by(sparse), n=N, rank=20, key=KEY)
    truth = scipy.sparse.linalg.eigsh(
        matrix, 20, which="LM", v0=rng.normal(size=N), return_eigenvectors=False
    )
    assert_leading(found, matrix, 20, truth=by_magnitude(truth))
    assert_leading(find(matrix, 20)[0], matrix, 20)


@pytest.mark.parametrize("make", [noisy, wigner])
@pytest.mark.parametrize("seed", range(3))
def test_density_counts_eigenvalues(rng, monkeypatch, make, seed):
    monkeypatch.setattr(eigen, "SURVEY", 8)
    matrix = rounded(make(rng))
    density = eigenvalue_density(multiply_by(cast(matrix)), n=N, key=jax.random.key(seed))
    points, counts = exactly(density.points), exactly(density.counts)
    assert density.points.dtype == density.counts.dtype == DTYPE
    assert np.all(np.diff(points) >= 0)
    assert np.all(counts >= 0)
    assert_close(counts.sum(), N, scale=N)
    truth = np.linalg.eigvalsh(matrix)
    for quantile in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98):
        level = np.quantile(truth, quantile)
        below, above = (np.sum(truth < level), np.sum(truth > level))
        # Half a point may lie on the wrong side.
        error = 4 * np.sqrt(2 * min(below, above) / 32) + counts.max() / 2
        assert abs(counts[points < level].sum() - below) <= error
    for number in (5, 20, 50, 100):
        level = density.level(number)
        error = 4 * np.sqrt(2 * number / 32) + counts.max() / 2
        assert abs(np.sum(np.abs(truth) > level) - number) <= error


def test_density_of_small_matrices_is_exact(rng):
    matrix = rounded(noisy(rng, 64))
    density = eigenvalue_density(multiply_by(cast(matrix)), n=64, key=KEY, dtype=DTYPE)
    truth = np.linalg.eigvalsh(matrix)
    assert_close(density.points, truth, scale=np.linalg.norm(matrix))
    np.testing.assert_array_equal(density.counts, np.ones(64))
    np.testing.assert_array_equal(np.sort(density.spectrum()), density.points)


def test_spectrum_fills_in_by_density(rng, monkeypatch):
    monkeypatch.setattr(eigen, "SURVEY", 8)
    matrix = rounded(noisy(rng))
    found, _ = find(matrix, 20)
    truth = np.linalg.eigvalsh(matrix)
    for spectrum in (found.spectrum, found.density.spectrum()):
        assert spectrum.shape == (N,)
        # The largest distance between the two distribution functions.
        places = np.searchsorted(np.sort(spectrum), truth)
        assert np.abs(places - np.arange(N)).max() <= 4 * np.sqrt(2 * (N / 2) / 32)


@pytest.mark.one_leg
@pytest.mark.parametrize(("rank", "make"), [(2, low_rank), (RANK, noisy)], ids=["survey", "loop"])
def test_progress_comes_to_its_end(rng, rank, make):
    seen = []
    multiply = multiply_by(cast(make(rng)))
    leading_eigenpairs(multiply, n=N, rank=rank, key=KEY, progress=lambda *told: seen.append(told))
    stages, fractions = zip(*seen, strict=True)
    assert set(stages) == {"eigenpairs"}
    assert fractions == tuple(sorted(fractions))
    assert fractions[-1] == 1


@pytest.mark.one_leg
def test_a_second_call_compiles_nothing(rng, compilations):
    matrix = rounded(noisy(rng))
    find(matrix, RANK)
    compilations.clear()
    find(matrix, RANK)
    assert compilations == []


@pytest.mark.one_leg
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("n", [64, N])
def test_what_is_not_finite_raises(rng, n, wrong):
    matrix = noisy(rng, n)
    matrix[3, 5] = matrix[5, 3] = wrong
    with pytest.raises(ValueError, match="multiply: got products with NaN or infinity"):
        find(matrix, 4)
    with pytest.raises(ValueError, match="multiply: got products with NaN or infinity"):
        eigenvalue_density(multiply_by(cast(matrix)), n=n, key=KEY)


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"tolerance": 0.0}, "tolerance: got 0.0, expected a number above 0; pass a relative"),
        ({"rank": 0}, "rank: got 0, expected 1 to 9; the matrix has 9"),
        ({"rank": 10}, "rank: got 10, expected 1 to 9"),
        ({"n": 0}, "n: got 0, expected at least 1"),
    ],
)
def test_wrong_settings_raise(wrong, says):
    settings = {"n": 9, "rank": 2, "key": KEY} | wrong
    with pytest.raises(ValueError, match=says):
        leading_eigenpairs(multiply_by(jnp.eye(9)), **settings)


@pytest.mark.parametrize("form", [cast, scipy.sparse.csr_array])
def test_decompose_takes_large_signals_apart(rng, form, monkeypatch):
    """Also those of which the density would be that of a full decomposition."""
    monkeypatch.setattr(eigen, "DENSE", 4096)
    monkeypatch.setattr(eigen, "_dense", None)
    signal = rounded(noisy(rng)).astype(DTYPE)
    spectrum = validate(decompose(form(signal), rank=RANK))
    truth = np.abs(eigenvalues_of(exactly(signal)))[:RANK]
    assert np.all(np.abs(spectrum.values - truth) <= 4 * (1e-6 * truth + 10 * EPS * truth[0]))
    rows = np.abs(spectrum.vectors).argmax(axis=0)
    assert np.all(exactly(spectrum.vectors)[rows, np.arange(RANK)] > 0)
    tighter = 1e-4
    spectrum = decompose(form(signal), rank=5, tolerance=tighter)
    u, values = exactly(spectrum.vectors), exactly(spectrum.values)
    signs = np.sign(np.sum(u * (signal @ u), axis=0))
    residuals = np.linalg.norm(signal @ u - u * values * signs, axis=0)
    assert np.all(residuals <= 1.01 * tighter * values)


def test_decompose_inside_jit_is_full(rng):
    signal = rounded(noisy(rng, 100))
    values = jax.jit(lambda x: decompose(x, rank=4).values)(cast(signal))
    assert_close(values, np.abs(eigenvalues_of(signal))[:4], scale=np.linalg.norm(signal))


def test_decompose_takes_float64_of_scipy(rng):
    """Also in a JAX of 32 bit, without a warning."""
    for n in (30, N):
        signal = noisy(rng, n)
        spectrum = decompose(scipy.sparse.csr_array(signal), rank=3)
        assert spectrum.values.dtype == spectrum.vectors.dtype == DTYPE
        truth = np.abs(eigenvalues_of(signal))[:3]
        assert_close(spectrum.values, truth, scale=truth[0], eps=EPS + 1e-7)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_decompose_says_what_is_not_symmetric(rng, size):
    for n in (30, N):
        signal = size * noisy(rng, n)
        signal[0, 1] += 0.3 * size * n**0.5
        for x in (cast(signal), scipy.sparse.csr_array(signal.astype(DTYPE))):
            if n <= 64 and not scipy.sparse.issparse(x):
                continue  # gives NaN: see test_spectral
            with pytest.raises(ValueError, match="signal: got a matrix that is not its own tr"):
                decompose(x, rank=3)


@pytest.mark.one_leg
def test_decompose_of_a_sparse_signal_is_symmetric_unless_said_otherwise():
    with pytest.raises(ValueError, match="expected a square symmetric matrix"):
        decompose(scipy.sparse.csr_array(np.ones((3, 4), DTYPE)), rank=3)


@pytest.mark.one_leg
def test_lowers_for_accelerators(rng):
    """No operation without a kernel there; running it takes a GPU."""
    basis, projected = jnp.zeros((96, 50), DTYPE), jnp.zeros((96, 96), DTYPE)
    block = cast(np.linalg.qr(rng.normal(size=(50, 32)))[0])
    sparse = multiply_by(scipy.sparse.eye_array(50, dtype=DTYPE))
    dense = multiply_by(jnp.eye(50))
    programs = {
        dense.func: (*dense.args, block),
        sparse.func: (*sparse.args, block),
        eigen._absorb: (basis, projected, block, block, 32),
        eigen._refresh: (basis, block, jnp.ones(32, bool), KEY),
        eigen._rayleigh: (block, [block]),
    }
    for program, arguments in programs.items():
        platforms = "cuda", "rocm", "tpu"
        assert export.export(program, platforms=platforms)(*arguments).platforms == platforms
