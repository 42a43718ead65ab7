"""Alignment and distance of embeddings against dense matrices, by definition."""

import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alignments import (
    ALIGNMENTS,
    FUNCTIONS,
    NOTHING,
    SHAPES,
    by_columns,
    dense_cka,
    dense_distance,
    drawn,
    named,
    size_of,
    song,
    song_alignment,
    u_alignment,
    u_statistic,
    wide,
)
from helpers import DTYPE, EPS, assert_close, cast, exactly, rotation, rounded

from jaxmeta.covariance import moments
from jaxmeta.similarity import (
    cka,
    cka_of_moments,
    procrustes_distance,
    unbiased_cka,
    unbiased_hsic,
)

pytestmark = pytest.mark.slow


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
    if "xla_cpu_use_fusion_emitters" in os.environ.get("XLA_FLAGS", ""):
        options["xla_cpu_use_fusion_emitters"] = True
    shape = jax.ShapeDtypeStruct((16, 6), jnp.float32)
    distance = jax.jit(procrustes_distance).lower(shape, shape).compile(compiler_options=options)
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
