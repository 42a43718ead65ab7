"""Alignment and distance of embeddings against dense matrices, by definition, and by chance."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, EPS, assert_close, cast, exactly, rotation, rounded

from jaxmeta.covariance import moments
from jaxmeta.similarity import (
    PermutationTest,
    cka,
    cka_of_moments,
    permutation_test,
    procrustes_distance,
    unbiased_cka,
    unbiased_hsic,
)

FUNCTIONS = [cka, unbiased_cka, unbiased_hsic, procrustes_distance]
ALIGNMENTS = [cka, unbiased_cka]
# Rows and columns: the usual, few rows, more columns than rows. A new shape compiles for a second.
SHAPES = [(16, 4, 3), (2, 1, 3), (3, 2, 1), (5, 7, 9)]


def named(function):
    return function.__name__


def wide(x):
    """With more digits than float64, where the platform has them."""
    return np.asarray(x).astype(np.longdouble)


def centred_inner_products(x):
    """All n x n of them."""
    x, h = wide(x), np.eye(len(x), dtype=np.longdouble) - np.longdouble(1) / len(x)
    return h @ x @ x.T @ h


def frobenius(x):
    return np.sqrt((x * x).sum())


def dense_cka(e, f):
    p, q = centred_inner_products(e), centred_inner_products(f)
    return float((p * q).sum() / (frobenius(p) * frobenius(q)))


def u_statistic(e, f):
    """HSIC_1 by its definition: the mean over all four rows that differ."""
    k, m = (x @ x.T for x in (wide(e), wide(f)))
    terms = [
        k[i, j] * m[i, j] + k[i, j] * m[q, r] - 2 * k[i, j] * m[i, q]
        for i, j, q, r in itertools.permutations(range(len(k)), 4)
    ]
    return sum(terms) / len(terms)


def u_alignment(e, f):
    return float(u_statistic(e, f) / np.sqrt(u_statistic(e, e) * u_statistic(f, f)))


def song(e, f):
    """HSIC_1 as in Song et al. 2012, Eq. 5, of n x n matrices with nothing on the diagonal."""
    n = len(e)
    k, m = (x @ x.T for x in (wide(e), wide(f)))
    np.fill_diagonal(k, 0)
    np.fill_diagonal(m, 0)
    chance = k.sum() * m.sum() / ((n - 1) * (n - 2))
    return ((k * m).sum() + chance - 2 / wide(n - 2) * (k @ m).sum()) / (n * (n - 3))


def song_alignment(e, f):
    return float(song(e, f) / np.sqrt(song(e, e) * song(f, f)))


def dense_distance(e, f):
    """What is left after the rotation that NumPy finds in float64."""
    width = max(e.shape[1], f.shape[1])
    e, f = (
        np.pad(exactly(wide(x) - wide(x).mean(0)), ((0, 0), (0, width - x.shape[1])))
        for x in (e, f)
    )
    e, f = e / np.linalg.norm(e), f / np.linalg.norm(f)
    u, _, vt = np.linalg.svd(f.T @ e)
    return np.linalg.norm(e - f @ u @ vt)


def size_of(e, f):
    """What HSIC_1 is rounded relative to."""
    p, q = centred_inner_products(e), centred_inner_products(f)
    n = len(p)
    return float(frobenius(p) * frobenius(q)) / (n * max(n - 3, 1))


def drawn(rng, n, *widths, offset=0.0):
    """Embeddings that share something."""
    shared = rng.normal(size=(n, min(widths)))
    return tuple(
        rounded(
            np.pad(shared, ((0, 0), (0, k - shared.shape[1]))) + rng.normal(size=(n, k)) + offset
        )
        for k in widths
    )


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize(("n", "k", "m"), SHAPES)
def test_alignment_against_dense_matrices(rng, n, k, m, offset):
    for _ in range(5):
        e, f = drawn(rng, n, k, m, offset=offset)
        assert_close(cka(cast(e), cast(f)), dense_cka(e, f), scale=1)


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize(("n", "k", "m"), [(4, 1, 1), (5, 7, 9), (6, 3, 2)])
def test_unbiased_alignment_by_its_definition(rng, n, k, m, offset):
    for _ in range(3):
        e, f = drawn(rng, n, k, m, offset=offset)
        expected = u_statistic(e - offset, f - offset)
        assert_close(unbiased_hsic(cast(e), cast(f)), expected, scale=size_of(e, f))
        assert abs(song(e - offset, f - offset) - expected) < 1e-12 * size_of(e, f)
        parts = [size_of(x, x) / float(u_statistic(x - offset, x - offset)) for x in (e, f)]
        expected = u_alignment(e - offset, f - offset)
        assert_close(unbiased_cka(cast(e), cast(f)), expected, scale=1 + sum(parts))


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize(("n", "k", "m"), SHAPES)
def test_distance_against_a_dense_decomposition(rng, n, k, m, offset):
    for _ in range(5):
        e, f = drawn(rng, n, k, m, offset=offset)
        expected = dense_distance(e, f)
        assert 0 <= expected <= np.sqrt(2)
        assert_close(procrustes_distance(cast(e), cast(f)), expected, scale=1)


@pytest.mark.one_leg
def test_distance_is_a_metric(rng):
    for _ in range(20):
        e, f, g = drawn(rng, 16, 4, 4, 4)
        sides = [float(procrustes_distance(cast(x), cast(y))) for x, y in [(e, f), (f, g), (e, g)]]
        for x, y, z in itertools.permutations(sides):
            assert x <= y + z + 4 * EPS


@pytest.mark.one_leg
def test_an_embedding_is_like_itself(rng):
    (e,) = drawn(rng, 16, 4, offset=3.0)
    alike = (e, 1e3 + e, np.repeat(e[:4], 4, axis=0), e[:, [0, 0, 1, 1]], e * [1, 0, 0, 0])
    for x in map(cast, alike):
        assert cka(x, x) == 1
        assert procrustes_distance(x, x) == 0
        assert_close(unbiased_cka(x, x), 1, scale=1, terms=2)


@pytest.mark.one_leg
@pytest.mark.parametrize("function", [cka, unbiased_cka, procrustes_distance], ids=named)
def test_means_rotations_scales_and_the_order_of_words_change_nothing(rng, function):
    for _ in range(5):
        e, f = drawn(rng, 16, 4, 3)
        expected = function(cast(e), cast(f))
        moved = cast(-7 * e @ rotation(rng, 4) + rng.normal(size=(1, 4)))
        assert_close(function(moved, cast(f)), expected, scale=2)
        words = rng.permutation(16)
        assert_close(function(cast(e[words]), cast(f[words])), expected, scale=2)
        assert_close(function(cast(f), cast(e)), expected, scale=2)
        assert_close(function(cast(e), jnp.pad(cast(f), ((0, 0), (0, 1)))), expected, scale=2)
        like = float(function is not procrustes_distance)
        assert_close(function(moved, cast(e)), like, scale=2)


@pytest.mark.one_leg
@pytest.mark.parametrize("function", FUNCTIONS, ids=named)
def test_powers_of_two_round_nothing(rng, function):
    e, f = drawn(rng, 16, 4, 3)
    expected = function(cast(e), cast(f))
    for i, j in [(-83, 83), (83, 83), (-83, -83), (83, 0), (10, -20)]:
        found = function(cast(2.0**i * e), cast(2.0**j * f))
        if function is not unbiased_hsic:
            assert found == expected, (i, j)
        elif abs(i + j) < 60:
            assert found == expected * 4.0 ** (i + j), (i, j)


@pytest.mark.one_leg
def test_what_has_nothing_in_common(rng):
    q = np.linalg.qr(np.append(np.ones((16, 1)), rng.normal(size=(16, 7)), axis=1))[0]
    e, f = q[:, 1:5] * [4, 3, 2, 1], q[:, 5:]
    assert_close(cka(cast(e), cast(f)), 0, scale=1, terms=1)
    assert_close(procrustes_distance(cast(e), cast(f)), np.sqrt(2), scale=1)
    expected = song_alignment(rounded(e), rounded(f))
    assert expected < -0.1
    assert_close(unbiased_cka(cast(e), cast(f)), expected, scale=4)


NOTHING = {
    "zero": np.zeros,
    "constant": partial(np.full, fill_value=0.1),
    "large": lambda shape: np.full(shape, 1e6 / 3),
}


@pytest.mark.one_leg
@pytest.mark.parametrize("make", NOTHING.values(), ids=NOTHING)
def test_an_embedding_of_equal_rows_is_like_no_other(rng, make):
    e, nothing = cast(drawn(rng, 11, 4)[0]), cast(make((11, 3)))
    for function in (cka, unbiased_cka, unbiased_hsic):
        for x, y in ((e, nothing), (nothing, e), (nothing, nothing)):
            assert function(x, y) == 0
    assert_close(procrustes_distance(e, nothing), 1, scale=1, terms=2)
    assert_close(procrustes_distance(nothing, e), 1, scale=1, terms=2)
    assert procrustes_distance(nothing, nothing) == 0


@pytest.mark.one_leg
def test_rank_one_and_duplicates(rng):
    x, y, f = drawn(rng, 16, 1, 4, 3)
    line = rounded(x @ rounded(rng.normal(size=(1, 4))))
    for e in (line, y[:, [0, 0, 1, 1]], np.repeat(y[:8], 2, axis=0)):
        assert_close(cka(cast(e), cast(f)), dense_cka(e, f), scale=1)
        assert_close(unbiased_cka(cast(e), cast(f)), song_alignment(e, f), scale=4)
        assert_close(procrustes_distance(cast(e), cast(f)), dense_distance(e, f), scale=1)
    x = cast(x * [1, 0, 0])
    assert_close(cka(cast(line), x), 1, scale=1)
    assert_close(procrustes_distance(cast(line), x), 0, scale=1)


@pytest.mark.one_leg
def test_unbiased_alignment_with_rows_orthogonal_to_each_other_is_0(rng):
    f = cast(drawn(rng, 16, 4)[0])
    for columns in (1, 4, 16):
        for origin, scale in ((0, 1), (0.1, 1e3)):
            e = cast(origin + scale * np.eye(16) * (np.arange(16) < columns))
            assert unbiased_cka(e, f) == 0
            assert unbiased_cka(e, e) == 0


@pytest.mark.one_leg
def test_means_over_batches_are_those_of_all_rows(rng):
    e, f = drawn(rng, 6, 3, 2)
    batches = jnp.asarray(list(itertools.combinations(range(6), 4)))
    each = jax.vmap(lambda rows: unbiased_hsic(cast(e)[rows], cast(f)[rows]))(batches)
    assert_close(jnp.mean(each), unbiased_hsic(cast(e), cast(f)), scale=4 * size_of(e, f))


@pytest.mark.one_leg
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("function", FUNCTIONS, ids=named)
def test_what_is_no_number_gives_none_at_once(rng, function, bad):
    """LAPACK may loop for ever on infinity: rows less an infinite mean are NaN by then."""
    e, f = drawn(rng, 16, 4, 3)
    for place in ((0, 0), (15, 3), np.s_[:, 1]):
        spoilt = e.copy()
        spoilt[place] = bad
        assert np.isnan(function(cast(spoilt), cast(f)))
        assert np.isnan(function(cast(f), cast(spoilt)))
        assert np.isnan(function(cast(spoilt), cast(np.zeros((16, 3)))))


@pytest.mark.one_leg
def test_the_largest_numbers_are_no_infinity(rng):
    largest = float(jnp.finfo(DTYPE).max)
    e = rounded(np.where(rng.normal(size=(16, 4)) > 0, 1, -1) * largest)
    f = rounded(drawn(rng, 16, 3)[0])
    small = e / largest
    for function in (cka, unbiased_cka, procrustes_distance):
        assert_close(function(cast(e), cast(f)), function(cast(small), cast(f)), scale=2)


def usual(rng, **kwargs):
    return drawn(rng, 60, 59, 40, **kwargs)


CASES = {
    "a large mean": lambda rng: usual(rng, offset=1e6),
    "as wide as it can be": lambda rng: (rng.normal(size=(60, 59)), usual(rng)[1]),
    "steep": lambda rng: (
        np.pad(e := rng.normal(size=(60, 40)) * np.logspace(0, -4, 40), ((0, 0), (0, 19))),
        e @ rotation(rng, 40),
    ),
    "lengths that differ": lambda rng: (
        rng.normal(size=(60, 59)) * rng.pareto(1, size=(60, 1)),
        usual(rng)[1],
    ),
    "many rows": lambda rng: drawn(rng, 100_000, 5, 4, offset=1e3),
}


@pytest.mark.one_leg
@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_single_precision_agrees_with_double(rng, make):
    e, f = (x.astype(np.float32) for x in make(rng))
    oracles = {
        cka: by_columns,
        procrustes_distance: dense_distance,
        unbiased_cka: unbiased_by_columns,
    }
    for function, oracle in oracles.items():
        found = function(jnp.asarray(e), jnp.asarray(f))
        assert found.dtype == jnp.float32
        assert abs(float(found) - oracle(e, f)) <= 2e-6, named(function)
    found = cka_of_moments(moments((jnp.asarray(e), jnp.asarray(f))))
    assert abs(float(found[0, 1]) - by_columns(e, f)) <= 2e-6


def by_columns(e, f):
    """The dense alignment, for many rows: its inner products are those of columns."""
    e, f = (exactly(wide(x) - wide(x).mean(0)) for x in (e, f))
    return np.linalg.norm(e.T @ f) ** 2 / np.linalg.norm(e.T @ e) / np.linalg.norm(f.T @ f)


def unbiased_by_columns(e, f):
    """Song's formula, with sums over pairs of different rows as those over all pairs less n."""

    def hsic(x, y):
        n, p, q = len(x), (x * x).sum(1), (y * y).sum(1)
        pairs = np.linalg.norm(x.T @ y) ** 2 - p @ q
        return pairs + p.sum() * q.sum() / ((n - 1) * (n - 2)) - 2 * (p @ q) / (n - 2)

    e, f = (exactly(wide(x) - wide(x).mean(0)) for x in (e, f))
    return hsic(e, f) / np.sqrt(hsic(e, e) * hsic(f, f))


@pytest.mark.one_leg
def test_the_two_forms_of_the_oracles_agree(rng):
    e, f = drawn(rng, 16, 4, 3)
    np.testing.assert_allclose(by_columns(e, f), dense_cka(e, f), rtol=1e-13)
    np.testing.assert_allclose(unbiased_by_columns(e, f), song_alignment(e, f), rtol=1e-12)


@pytest.mark.one_leg
def test_many_equal_rows(rng):
    """Of so many the mean is not the number that each of them is."""
    e, same = rng.normal(size=(100_000, 5)), np.full((100_000, 4), 0.1)
    for function in ALIGNMENTS:
        assert function(jnp.asarray(e, jnp.float32), jnp.asarray(same, jnp.float32)) == 0


COLUMNS = {"flat": np.ones(20), "steep": np.logspace(0, -4, 20)}


@pytest.mark.one_leg
@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_single_precision_keeps_the_digits_of_small_distances(rng, columns):
    for size in [0, 1e-5, 1e-4, 1e-3, 1e-2]:
        e = rng.normal(size=(300, 20)) * columns
        noise = rng.normal(size=e.shape)
        f = (e + size * np.linalg.norm(e) / np.linalg.norm(noise) * noise) @ rotation(rng, 20)
        e, f = e.astype(np.float32), f.astype(np.float32)
        expected = dense_distance(e, f)
        found = float(procrustes_distance(jnp.asarray(e), jnp.asarray(f)))
        assert abs(found - expected) <= 2e-7 + 1e-5 * expected, size


@pytest.mark.one_leg
def test_distances_are_right_where_the_compiler_optimises(rng):
    """A product fused with the sum after it has digits that are cut off elsewhere."""
    options = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}
    shape = jax.ShapeDtypeStruct((16, 6), jnp.float32)
    distance = procrustes_distance.lower(shape, shape).compile(compiler_options=options)
    for _ in range(1000):
        e = rng.normal(size=(16, 6))
        e, f = (x.astype(np.float32) for x in (e, e + 1e-4 * rng.normal(size=e.shape)))
        found = float(distance(jnp.asarray(e), jnp.asarray(f)))
        assert abs(found - dense_distance(e, f)) <= 2e-7


@pytest.mark.parametrize(
    ("function", "oracle"),
    [(cka, dense_cka), (unbiased_cka, song_alignment), (procrustes_distance, dense_distance)],
)
def test_gradients_are_slopes_of_the_dense_truth(rng, function, oracle):
    e, f = drawn(rng, 16, 4, 3, offset=2.0)
    gradients = jax.jit(jax.grad(function, argnums=(0, 1)))(cast(e), cast(f))
    for argument, gradient in enumerate(map(exactly, gradients)):
        move = rng.normal(size=gradient.shape)
        ahead, behind = (
            oracle(*(x + s * move if i == argument else x for i, x in enumerate((e, f))))
            for s in (1e-5, -1e-5)
        )
        slope = (ahead - behind) / 2e-5
        assert abs(slope) > 1e-4
        assert abs((gradient * move).sum() - slope) <= 1e-8 + 64 * EPS


@pytest.mark.one_leg
def test_the_gradient_of_no_distance_is_0(rng):
    e = cast(drawn(rng, 16, 4)[0])
    for gradient in jax.grad(procrustes_distance, argnums=(0, 1))(e, e):
        assert not gradient.any()


@pytest.mark.one_leg
def test_few_rows_are_refused_by_the_unbiased_estimate():
    for function in (unbiased_cka, unbiased_hsic):
        with pytest.raises(ValueError, match="got 3 rows, expected at least 4"):
            function(jnp.ones((3, 2)), jnp.ones((3, 2)))


# By chance


@pytest.mark.one_leg
def test_alignment_by_chance_is_as_the_docstring_says(rng):
    """Over all orders of five words."""
    e, f = drawn(rng, 5, 3, 2, offset=1.0)
    orders = jnp.asarray(list(itertools.permutations(range(5))))
    each, unbiased = (
        jax.vmap(lambda rows, similarity=similarity: similarity(cast(e), cast(f)[rows]))(orders)
        for similarity in ALIGNMENTS
    )
    ranks = [np.trace(c := np.cov(x, rowvar=False)) ** 2 / np.linalg.norm(c) ** 2 for x in (e, f)]
    assert_close(jnp.mean(each), np.sqrt(np.prod(ranks)) / 4, scale=1)
    assert_close(jnp.mean(unbiased), 0, scale=4)


@pytest.mark.one_leg
def test_permutations_have_the_moments_of_chance(rng):
    e, f = drawn(rng, 5, 3, 2)
    found = permutation_test(cka, cast(e), cast(f), key=jax.random.key(0), draws=2000)
    null = [dense_cka(e, f[list(rows)]) for rows in itertools.permutations(range(5))]
    assert_close(found.observed, dense_cka(e, f), scale=1)
    assert abs(float(found.mean) - np.mean(null)) < 4 * np.std(null) / np.sqrt(2000)
    assert abs(float(found.std) / np.std(null) - 1) < 0.1
    likely = np.mean(np.asarray(null) >= null[0] - 1e-9)
    assert abs(float(found.p_value) - likely) < 4 * np.sqrt(likely / 2000)


@pytest.mark.one_leg
def test_the_spread_is_that_of_a_sample(rng):
    """With n - 1: of two draws it is their difference over the root of two."""
    e, f = map(cast, drawn(rng, 16, 4, 3))
    key = jax.random.key(3)
    found = permutation_test(cka, e, f, key=key, draws=2)
    a, b = (cka(e, jax.random.permutation(k, f)) for k in jax.random.split(key, 2))
    assert_close(found.mean, (a + b) / 2, scale=1)
    assert_close(found.std, abs(a - b) / np.sqrt(2), scale=1)


@pytest.mark.one_leg
def test_p_values_of_unrelated_embeddings_are_uniform():
    draws, trials = 9, 2000

    def trial(key):
        parts = jax.random.split(key, 3)
        e, f = (jax.random.normal(part, (8, 2), DTYPE) for part in parts[:2])
        return permutation_test(cka, e, f, key=parts[2], draws=draws).p_value

    values = jax.jit(jax.vmap(trial))(jax.random.split(jax.random.key(1), trials))
    places = np.round(exactly(values) * (draws + 1))
    assert_close(values, places / (draws + 1), scale=1, terms=1)
    counts = np.bincount(places.astype(int), minlength=draws + 2)
    assert counts[0] == 0
    expected = trials / (draws + 1)
    chi_squared = ((counts[1:] - expected) ** 2 / expected).sum()
    assert chi_squared < 27.9  # one in a thousand, for nine degrees of freedom


@pytest.mark.one_leg
def test_an_alignment_that_is_none_of_chance(rng):
    e = cast(drawn(rng, 16, 4)[0] * [1, 1, 1, 0])
    for similarity in (*ALIGNMENTS, lambda e, f: -procrustes_distance(e, f)):
        found = permutation_test(similarity, e, 3 - e[:, 2::-1], key=jax.random.key(0), draws=19)
        assert_close(found.p_value, 1 / 20, scale=1, terms=1)
        assert found.mean < found.observed


@pytest.mark.one_leg
def test_permutations_are_those_of_the_key(rng):
    e, f = map(cast, drawn(rng, 16, 4, 3))
    run = partial(permutation_test, cka, e, f, draws=19)
    first, again, other = (run(key=jax.random.key(seed)) for seed in (0, 0, 1))
    assert isinstance(first, PermutationTest)
    assert first == again
    assert first.mean != other.mean
    assert first.observed == other.observed == cka(e, f)


@pytest.mark.one_leg
def test_similarities_that_differ_by_rounding_count_as_equal():
    """Alignments of embeddings with a word apart are 1, or 1 / (n - 1)^2 for other orders."""
    n = 11
    e = cast(0.1 + 0.7 * np.eye(n)[:, :1] @ np.array([[0.3, 0.1, 0.9]]))
    f = jnp.roll(e, 4, axis=0)

    def centred(e, f):
        return cka(e, f) - jnp.asarray(1 / (n - 1) ** 2, DTYPE)

    for similarity in (cka, centred):
        found = permutation_test(similarity, e, f, key=jax.random.key(0), draws=50)
        assert found.p_value == 1
        assert found.std > 0


@pytest.mark.one_leg
def test_permutations_of_nothing_and_of_what_is_no_number(rng):
    e, nothing = cast(drawn(rng, 16, 4)[0]), jnp.zeros((16, 3))
    found = permutation_test(cka, e, nothing, key=jax.random.key(0), draws=19)
    assert found == (0, 0, 0, 1)
    for x, y in ((e.at[3, 1].set(jnp.nan), nothing), (e, nothing.at[3, 1].set(jnp.inf))):
        assert np.isnan(permutation_test(cka, x, y, key=jax.random.key(0), draws=19)).all()


@pytest.mark.one_leg
def test_wrong_permutations_raise():
    e, key = jnp.ones((5, 2)), jax.random.key(0)
    with pytest.raises(ValueError, match="draws: got 1, expected at least 2"):
        permutation_test(cka, e, e, key=key, draws=1)
    with pytest.raises(TypeError, match="draws: got a float, expected an int"):
        permutation_test(cka, e, e, key=key, draws=19.0)
    with pytest.raises(ValueError, match=r"similarity\(e, f\): got an array of shape \(5, 2\)"):
        permutation_test(lambda e, f: e + f, e, e, key=key, draws=19)


# From moments


def test_alignment_of_moments_is_that_of_rows(rng):
    sources = drawn(rng, 16, 4, 3, 2, offset=5.0)
    found = cka_of_moments(moments(cast(sources)))
    expected = [[dense_cka(e, f) for f in sources] for e in sources]
    assert found.dtype == DTYPE
    assert_close(found, expected, scale=1)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(jnp.diag(found), np.ones(3))
    np.testing.assert_array_equal(cka_of_moments(moments(cast(sources[:1]))), [[1]])


@pytest.mark.one_leg
@pytest.mark.parametrize("host", [False, True], ids=["device", "host"])
def test_alignment_of_moments_of_blocks_far_apart(rng, host):
    """The sums are about the mean of one block, so products of means are taken from them."""
    sources = drawn(rng, 16, 4, 3)
    sources = [rounded(source + 1e3 * (np.arange(16) > 4)[:, None] + 1e2) for source in sources]
    blocks = [
        tuple((np.asarray if host else cast)(x[rows].astype(DTYPE)) for x in sources)
        for rows in (np.s_[:5], np.s_[5:])
    ]
    for parts in (blocks, blocks[::-1]):
        total = sum(map(moments, parts[1:]), start=moments(parts[0]))
        assert_close(cka_of_moments(total)[0, 1], dense_cka(*sources), scale=1, terms=64)


@pytest.mark.one_leg
def test_alignment_of_moments_of_many_blocks(rng):
    """The sums are about the first row, which is far from the others."""
    sources = [np.append(100 + x[:1], x[1:], axis=0) for x in drawn(rng, 300, 4, 3)]
    sources = [rounded(source) for source in sources]
    blocks = [tuple(x[i : i + 1].astype(DTYPE) for x in sources) for i in range(300)]
    total = sum(map(moments, blocks[1:]), start=moments(blocks[0]))
    assert_close(cka_of_moments(total)[0, 1], by_columns(*sources), scale=1, terms=4)


@pytest.mark.one_leg
def test_alignment_of_moments_with_nothing(rng):
    e, f = drawn(rng, 16, 4, 3)
    for first, second in itertools.pairwise((*NOTHING.values(), np.zeros)):
        found = cka_of_moments(moments(cast((e, first((16, 3)), second((16, 2))))))
        np.testing.assert_array_equal(found, np.eye(3) * [1, 0, 0])
    partly = np.append(1e3 * e[:, :2], np.full((16, 2), 0.1), axis=1)
    found = cka_of_moments(moments(cast((partly, f, np.zeros((16, 2))))))
    assert_close(found[0, 1], dense_cka(rounded(partly[:, :2]), f), scale=1)
    many = jnp.full((50_000, 2), 0.1, DTYPE)
    np.testing.assert_array_equal(cka_of_moments(moments((many,))), [[0]])


@pytest.mark.one_leg
def test_rows_that_only_one_source_has_are_no_moments_of_both(rng):
    sources = drawn(rng, 16, 4, 3, 2)
    present = jnp.ones((16, 3), bool).at[2].set(False)
    found = cka_of_moments(moments(cast(sources), present))
    rest = [np.delete(source, 2, axis=0) for source in sources]
    assert_close(found, [[dense_cka(e, f) for f in rest] for e in rest], scale=1)
    with pytest.raises(ValueError, match="got 15 rows of source 1, 14 of both 0 and 1"):
        cka_of_moments(moments(cast(sources), present.at[5, 0].set(False)))
    stats = moments(cast(sources), present.at[5, 1].set(False))
    with pytest.raises(ValueError, match="got 15 rows of source 0, 14 of both 0 and 1"):
        cka_of_moments(stats)
    within = jax.jit(cka_of_moments)(stats)
    np.testing.assert_array_equal(np.isnan(within), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    assert_close(within[0, 2], found[0, 2], scale=1)
    # As many rows each, and not the same.
    swapped = present.at[4, 0].set(False).at[5, 1].set(False).at[6, 2].set(False)
    with pytest.raises(ValueError, match="the same rows of all sources"):
        cka_of_moments(moments(cast(sources), swapped))


@pytest.mark.one_leg
def test_moments_that_are_no_numbers_show_where_they_are(rng):
    e, f, g = cast(drawn(rng, 16, 4, 3, 2))
    spoilt = f.at[0, 0].set(jnp.nan)
    for last in (g, 0 * g):
        found = cka_of_moments(moments((e, spoilt, last)))
        np.testing.assert_array_equal(np.isnan(found), [[0, 1, 0], [1, 1, 1], [0, 1, 0]])


@pytest.mark.one_leg
def test_wrong_moments_raise():
    e = np.ones((5, 2), np.float32)
    with pytest.raises(TypeError, match="stats: got a tuple, expected moments"):
        cka_of_moments((e, e))
    for stats in (moments((e, e), parts=("unit",)), moments((e, e), pairs=False)):
        with pytest.raises(ValueError, match=r"stats: got . pairs, expected moments"):
            cka_of_moments(stats)


# Programs


def of_rows(e, f):
    return cka_of_moments(moments((e, f), parts=("raw",)))


def by_permutations(e, f):
    return permutation_test(cka, e, f, key=jax.random.key(0), draws=19)


PROGRAMS = [*FUNCTIONS, of_rows, by_permutations]


def intermediates(jaxpr):
    """Of a program and of all programs that it calls."""
    for equation in jaxpr.eqns:
        yield from (x.aval for x in equation.outvars)
        for inner in jax.tree.leaves(
            list(equation.params.values()),
            is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr"),
        ):
            if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                yield from intermediates(getattr(inner, "jaxpr", inner))


@pytest.mark.one_leg
@pytest.mark.parametrize("program", PROGRAMS, ids=named)
def test_no_matrix_of_all_pairs_of_words(program):
    n = 300
    shapes = jax.ShapeDtypeStruct((n, 4), jnp.float32), jax.ShapeDtypeStruct((n, 3), jnp.float32)
    for traced in (program, jax.grad(lambda *x: jnp.sum(jax.tree.leaves(program(*x))[0]))):
        sizes = [x.size for x in intermediates(jax.make_jaxpr(traced)(*shapes).jaxpr)]
        assert 4 * n <= max(sizes) < n * n


@pytest.mark.one_leg
@pytest.mark.parametrize("program", PROGRAMS, ids=named)
def test_sizes_beyond_32_bit_integers(program):
    """Numbers of pairs of rows enter a program as floats."""
    e, f = (jax.ShapeDtypeStruct((50_000, k), jnp.float32) for k in (3, 2))
    for leaf in jax.tree.leaves(jax.eval_shape(program, e, f)):
        assert leaf.dtype == jnp.float32


@pytest.mark.one_leg
@pytest.mark.parametrize("program", PROGRAMS, ids=named)
def test_new_values_compile_nothing(rng, program, compilations):
    first, second = (cast(drawn(rng, 16, 4, 3)) for _ in range(2))
    jax.block_until_ready(program(*first))
    compilations.clear()
    jax.block_until_ready(program(*second))
    assert not compilations
