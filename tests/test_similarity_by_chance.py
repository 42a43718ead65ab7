"""Alignment by chance, from moments, and the programs that are compiled for it."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from alignments import (
    ALIGNMENTS,
    FUNCTIONS,
    NOTHING,
    by_columns,
    dense_cka,
    drawn,
    named,
)
from helpers import DTYPE, assert_close, cast, exactly, rounded

from jaxmeta.covariance import moments
from jaxmeta.similarity import (
    PermutationTest,
    cka,
    cka_of_moments,
    permutation_test,
    procrustes_distance,
)

pytestmark = pytest.mark.slow

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
