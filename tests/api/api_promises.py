"""What every public function promises, checked for every row of the API table.

All promises of a row run in one test, one after the other, as most of the time is compilation and
they share what is compiled. Promises that hold for the same reason in both dtypes are checked in
the 32-bit leg alone, and some that need digits in the 64-bit one.
"""

import functools
import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from api_rows import WORDS, Row
from helpers import DTYPE, IN_64_BIT, assert_close, assert_trees_close, cast
from jax import export
from jax.test_util import check_grads


def generator():
    """Numbers that are the same on every run."""
    return np.random.default_rng(20220101)


def norm_of(tree):
    """What rounding errors are relative to; at least 1, for weights and angles."""
    leaves = [np.asarray(x, np.float64).ravel() for x in jax.tree.leaves(tree)]
    return max(1.0, np.linalg.norm(np.concatenate(leaves)))


def floats(tree):
    return [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]


def total(tree):
    return sum(jnp.sum(x) for x in floats(tree))


class Case:
    """A row, its generic arguments, and what is compiled once for all of its promises."""

    def __init__(self, row: Row):
        self.row = row
        self.corners = {"generic": row.generic, **row.degenerate}
        self.arguments = cast(row.generic(generator()))
        self.compiled = jax.jit(row.call)

    @functools.cached_property
    def out(self):
        return self.compiled(*self.arguments)

    @functools.cached_property
    def derivatives(self):
        """Backward and forward derivatives of the sum of all outputs."""

        def f(arguments):
            return total(self.row.smooth(self.row.call(*arguments)))

        ones = functools.partial(jax.tree.map, jnp.ones_like)
        return jax.jit(lambda a: (jax.grad(f)(a), jax.jvp(f, (a,), (ones(a),))[1]))


def dtype_follows_the_input(case):
    for dtype in [jnp.float32] + [jnp.float64] * IN_64_BIT:
        out = jax.eval_shape(case.row.call, *cast(case.arguments, dtype))
        assert bool(floats(out)) != case.row.discrete
        if case.row.discrete:
            assert all(jnp.issubdtype(x.dtype, jnp.integer) for x in jax.tree.leaves(out))
            continue
        assert {x.dtype for x in floats(out)} == {jnp.dtype(dtype)}
        assert not any(x.weak_type for x in floats(out))


def shapes_are_known_without_values(case):
    expected = jax.eval_shape(case.row.call, *case.arguments)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), case.out) == jax.tree.map(
        lambda x: (x.shape, x.dtype), expected
    )


# The argument, what came, what was expected, what to do.
FORM = re.compile(r"[\w.\[\] ]+: got .+, expected .+; .+\.", re.DOTALL)


def wrong(leaf, rows):
    """Arrays that cannot stand for `leaf`, by what is wrong with them."""
    if leaf.ndim == 0:
        return {"a vector": jnp.stack([leaf, leaf])}
    found = {
        "another axis": leaf[None],
        "integers": leaf.astype(jnp.int32),
        "no entry": leaf[:0],
    }
    if rows:
        found["a word less"] = leaf[1:]
    return found


def wrong_arguments_raise(case):
    """At once, while shapes are all there is, in words of one form."""
    leaves, structure = jax.tree.flatten(case.arguments)
    several = sum(leaf.ndim == 2 and leaf.shape[0] == WORDS for leaf in leaves) > 1
    for i, leaf in enumerate(leaves):
        rows = several and leaf.ndim == 2 and leaf.shape[0] == WORDS
        for what, array in wrong(leaf, rows).items():
            if what in case.row.takes:
                continue
            given = structure.unflatten([*leaves[:i], array, *leaves[i + 1 :]])
            where = f"{what} for argument {i} of {structure}"
            with pytest.raises((TypeError, ValueError)) as raised:
                jax.eval_shape(case.row.call, *given)
            assert FORM.fullmatch(str(raised.value)), f"{where}: {raised.value}"


def jit_equals_eager(case):
    """Called outside of a trace, as in a script, where the host may look at values and branch."""
    eager = case.row.call(*case.arguments)
    scale = norm_of(case.arguments) * norm_of(case.out)
    assert_trees_close(case.out, eager, scale=scale, terms=case.row.terms)


def vmap_equals_a_loop(case):
    rng = generator()
    each = [cast(case.row.generic(rng)) for _ in range(3)]
    batch = jax.tree.map(lambda *xs: jnp.stack(xs), *each)
    together = jax.jit(jax.vmap(case.row.call))(*batch)
    one_by_one = jax.tree.map(lambda *xs: jnp.stack(xs), *(case.compiled(*a) for a in each))
    scale = max(norm_of(a) for a in each) * norm_of(one_by_one)
    assert_trees_close(together, one_by_one, scale=scale, terms=case.row.terms)


def new_values_compile_nothing(case, compilations):
    rng = generator()
    first, second = cast(case.row.generic(rng)), cast(case.row.generic(rng))
    # Exponents are Python numbers in scripts, and those must not be static either.
    first, second = (
        jax.tree.map(lambda x: float(x) if x.ndim == 0 else x, a) for a in (first, second)
    )
    jax.block_until_ready(case.row.call(*first))
    compilations.clear()
    jax.block_until_ready(case.row.call(*second))
    assert not compilations


def nan_in_gives_nan_out(case, make):
    """Where values cannot be seen: outside jit some functions raise for them."""
    arguments = cast(make(generator()))
    leaves, structure = jax.tree.flatten(arguments)
    for i, leaf in enumerate(leaves):
        # Of an ideal's vectors the last lies beyond all sources, where its value alone counts.
        last = leaf.size - 1 - (leaf.ndim == 2)
        for place in {0, leaf.size // 2, last}:
            spoilt = np.array(leaf)
            spoilt.ravel()[place] = np.nan
            given = [*leaves[:i], jnp.asarray(spoilt), *leaves[i + 1 :]]
            out = case.compiled(*structure.unflatten(given))
            where = f"argument {i} of {structure}, entry {place}"
            assert any(np.isnan(x).any() for x in floats(out)), where
            assert all(np.isnan(x) for x in case.row.totals(out)), where


def gradients_are_finite(case, make):
    arguments = cast(make(generator()))
    gradients, slope = case.derivatives(arguments)
    leaves = [np.asarray(x) for x in jax.tree.leaves(gradients)]
    assert jax.tree.map(jnp.shape, gradients) == jax.tree.map(jnp.shape, arguments)
    for gradient in (*leaves, slope):
        assert np.isfinite(gradient).all(), gradients
    # Along ones, the forward derivative is the sum of the backward ones.
    size = sum(float(np.sum(np.abs(gradient))) for gradient in leaves)
    expected = sum(float(np.sum(gradient)) for gradient in leaves)
    assert_close(slope, expected, scale=size + norm_of(arguments), terms=case.row.terms)


def gradients_against_finite_differences(case):
    """With respect to all arguments: weights, spectra, alpha, embeddings."""

    def moving(*arguments):
        arguments = jax.tree.map(jnp.asarray, arguments)  # they are moved as NumPy arrays
        return floats(case.row.moving(case.row.call(*arguments)))

    check_grads(
        jax.jit(moving) if case.row.compiled else moving,
        case.arguments,
        order=case.row.order,
        modes=("fwd", "rev"),
        atol=case.row.tolerance,
        rtol=case.row.tolerance,
    )


def lowers_for_cuda(case):
    """No operation without a kernel there; running it takes a GPU."""
    exported = export.export(case.compiled, platforms=["cuda"])(*case.arguments)
    assert exported.platforms == ("cuda",)
    expected = set() if case.row.discrete else {DTYPE}
    assert {x.dtype for x in floats(exported.out_avals)} == expected


ALWAYS = (dtype_follows_the_input,)
IN_32 = (
    wrong_arguments_raise,
    shapes_are_known_without_values,
    jit_equals_eager,
    vmap_equals_a_loop,
)
IN_64 = (lowers_for_cuda,)


def promises_of(table):
    """A test with all promises of each row of a table."""

    @pytest.mark.parametrize("name", table)
    def test_promises(name, subtests, compilations):
        case = Case(table[name])
        for promise in (*ALWAYS, *(IN_64 if IN_64_BIT else IN_32)):
            with subtests.test(promise.__name__):
                promise(case)
        if not IN_64_BIT:
            with subtests.test("new_values_compile_nothing"):
                new_values_compile_nothing(case, compilations)
        if case.row.discrete:
            return
        for corner, make in case.corners.items():
            with subtests.test("nan_in_gives_nan_out", corner=corner):
                nan_in_gives_nan_out(case, make)
            with subtests.test("gradients_are_finite", corner=corner):
                gradients_are_finite(case, make)
        if IN_64_BIT:
            with subtests.test("gradients_against_finite_differences"):
                gradients_against_finite_differences(case)

    return test_promises


def functions_of(module):
    """Names of the functions that a module lists as public."""
    names = getattr(module, "__all__", ())
    return {name for name in names if inspect.isroutine(getattr(module, name))}
