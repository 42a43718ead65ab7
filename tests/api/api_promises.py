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
from api_rows import WORDS, Row, everything, inner_products
from helpers import DTYPE, IN_64_BIT, assert_close, assert_trees_close, cast
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


def total(tree, weights):
    """The sum of all outputs, each entry with a weight of its own."""
    return sum(jnp.sum(x * w) for x, w in zip(floats(tree), weights, strict=True))


def random(tree):
    """Numbers near 1 in the shapes of a tree, other in each entry."""
    rng = np.random.default_rng(7)
    return jax.tree.map(lambda x: jnp.asarray(rng.uniform(0.5, 1.5, x.shape), x.dtype), tree)


def ones(tree):
    return jax.tree.map(lambda x: jnp.ones(x.shape, x.dtype), tree)


class Case:
    """A row, its generic arguments, and programs that are compiled once for all promises."""

    def __init__(self, row: Row):
        self.row = row
        self.corners = {"generic": row.generic, **row.degenerate}
        self.arguments = cast(row.generic(generator()))

    @functools.cached_property
    def derived(self):
        """All outputs, all backward derivatives of smooth ones, and a forward one along moves."""

        def program(arguments, moves, weights):
            def f(arguments):
                out = self.row.call(*arguments)
                return total(self.row.smooth(out), weights), out

            gradients, out = jax.grad(f, has_aux=True)(arguments)
            slope = jax.jvp(lambda x: f(x)[0], (arguments,), (moves,))[1]
            return out, gradients, slope

        def discrete(arguments, *_):
            return self.row.call(*arguments), None, None

        return jax.jit(discrete if self.row.discrete else program)

    def outputs(self, part, arguments):
        """What a part of the outputs looks like."""
        return jax.eval_shape(lambda *a: floats(part(self.row.call(*a))), *arguments)

    def compiled(self, *arguments, numbers=ones):
        """All of the one program."""
        weights = numbers(self.outputs(self.row.smooth, arguments))
        return self.derived(arguments, numbers(arguments), weights)

    @functools.cached_property
    def out(self):
        return self.compiled(*self.arguments)[0]


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


def as_in_scripts(arguments):
    """Exponents are Python numbers there."""
    return jax.tree.map(lambda x: float(x) if x.ndim == 0 else x, arguments)


def jit_equals_eager(case):
    """Called outside of a trace, as in a script, where the host may look at values and branch."""
    eager = case.row.call(*as_in_scripts(case.arguments))
    scale = norm_of(case.arguments) * norm_of(case.out)
    assert_trees_close(case.out, eager, scale=scale, terms=case.row.terms)


def spoilt(case, change):
    """Arguments as in scripts with one leaf changed, and which."""
    leaves, structure = jax.tree.flatten(as_in_scripts(case.arguments))
    for i, leaf in enumerate(leaves):
        given = [*leaves[:i], change(np.asarray(leaf, DTYPE)), *leaves[i + 1 :]]
        yield f"argument {i} of {structure}", structure.unflatten(given)


def other_byte_orders_raise_or_are_understood(case):
    """Compiled programs take their bytes for other numbers."""
    eager = case.row.call(*as_in_scripts(case.arguments))
    for where, given in spoilt(case, lambda x: x.astype(x.dtype.newbyteorder("S"))):
        try:
            found, said = case.row.call(*given), ""
        except TypeError as error:
            found, said = eager, str(error)
        assert not said or FORM.fullmatch(said), f"{where}: {said}"
        assert_trees_close(found, eager, scale=norm_of(eager), terms=case.row.terms)


def nan_raises(case):
    """On the host, if nothing but integers comes out."""
    for _, given in spoilt(case, lambda x: np.full_like(x, np.nan)):
        with pytest.raises(ValueError, match=r"(?i)got nan"):
            case.row.call(*given)


def vmap_equals_a_loop(case):
    rng = generator()
    each = [cast(case.row.generic(rng)) for _ in range(3)]
    batch = jax.tree.map(lambda *xs: jnp.stack(xs), *each)
    together = jax.jit(jax.vmap(case.row.call))(*batch)
    one_by_one = jax.tree.map(lambda *xs: jnp.stack(xs), *(case.compiled(*a)[0] for a in each))
    scale = max(norm_of(a) for a in each) * norm_of(one_by_one)
    assert_trees_close(together, one_by_one, scale=scale, terms=case.row.terms)


def new_values_compile_nothing(case, compilations):
    rng = generator()
    first, second = (as_in_scripts(cast(case.row.generic(rng))) for _ in range(2))
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
            out = case.compiled(*structure.unflatten(given))[0]
            where = f"argument {i} of {structure}, entry {place}"
            assert any(np.isnan(x).any() for x in floats(out)), where
            assert all(np.isnan(x) for x in case.row.totals(out)), where


def infinity_in_ends_and_shows(case):
    """Of a matrix with infinity in it, LAPACK's singular values never end."""
    leaves, structure = jax.tree.flatten(case.arguments)
    for i, leaf in enumerate(leaves):
        if leaf.ndim == 2 and leaf.shape[0] == WORDS:
            given = [*leaves[:i], leaf.at[WORDS // 2, 0].set(jnp.inf), *leaves[i + 1 :]]
            out = case.compiled(*structure.unflatten(given))[0]
            assert not all(np.isfinite(x).all() for x in floats(out)), f"{i} of {structure}"


def powers_of(degrees, tree):
    """The power of the unit in each leaf of a tree; None for exponents."""
    if isinstance(degrees, tuple):
        parts = zip(degrees, tree, strict=True)
        return [power for part, leaves in parts for power in powers_of(part, leaves)]
    return [degrees for _ in jax.tree.leaves(tree)]


def in_unit(x, exponent):
    """A number times a power of two, and 0 if it has no more digits there; integers as they are."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    x = np.ldexp(x, exponent)
    return np.where(np.abs(x) < jnp.finfo(x.dtype).tiny, 0, x)


def any_unit_gives_the_same_bits(case):
    """Scaled by powers of two over the range of the dtype; derivatives are, too."""
    inward, outward, *within = case.row.scaling
    leaves, structure = jax.tree.flatten(case.arguments)
    powers = powers_of(inward, case.arguments)
    leaves = [
        jnp.full_like(x, 0.5) if p is None else x for x, p in zip(leaves, powers, strict=True)
    ]

    def results(exponent):
        given = [in_unit(x, exponent * (p or 0)) for x, p in zip(leaves, powers, strict=True)]
        return case.compiled(*structure.unflatten(given))[:2]

    out, gradients = results(0)
    becomes = powers_of(outward, out)
    # Derivatives are those of a sum, which has a unit if all that is added has the same.
    times = {everything: 1, inner_products: 2}.get(case.row.smooth, 0)
    total, known = times * becomes[0], times and len(set(becomes)) == 1
    slopes = [None if p is None or not known else total - p for p in powers if gradients]
    largest = max(1, *(abs(p or 0) for p in (*powers, *becomes, total, *slopes, *within)))
    reach = (jnp.finfo(DTYPE).maxexp - 32) // largest  # so that there are digits left
    for exponent in (-reach, -(reach // 3), reach // 3, reach):
        scaled = results(exponent)
        for found, first, units in zip(scaled, (out, gradients), (becomes, slopes), strict=True):
            for y, x, power in zip(*map(jax.tree.leaves, (found, first)), units, strict=True):
                if power is not None:
                    expected = in_unit(x, exponent * power)
                    np.testing.assert_array_equal(in_unit(y, 0), expected, f"unit 2**{exponent}")


def gradients_are_finite(case, make):
    arguments = cast(make(generator()))
    # At corners rounding decides which way is up: all that moves there moves alike.
    numbers = random if make is case.row.generic else ones
    _, gradients, slope = case.compiled(*arguments, numbers=numbers)
    assert jax.tree.map(jnp.shape, gradients) == jax.tree.map(jnp.shape, arguments)
    for gradient in (*jax.tree.leaves(gradients), slope):
        assert np.isfinite(gradient).all(), gradients
    # The forward derivative is what the backward ones add up to.
    products = jax.tree.map(lambda g, d: np.ravel(g * d), gradients, numbers(arguments))
    terms = np.concatenate(jax.tree.leaves(products))
    scale = np.sum(np.abs(terms)) + norm_of(arguments)
    assert_close(slope, np.sum(terms), scale=scale, terms=case.row.terms)


def gradients_against_finite_differences(case, step=1e-5):
    """Along a move of all arguments: weights, spectra, alpha, embeddings."""
    moves = random(case.arguments)
    weights = random(case.outputs(case.row.moving, case.arguments))

    @jax.jit
    def along(s):
        def f(s):
            moved = jax.tree.map(lambda x, d: x + s * d, case.arguments, moves)
            return total(case.row.moving(case.row.call(*moved)), weights)

        return jax.jvp(f, (s,), (jnp.ones_like(s),))

    (_, slope), (above, _), (below, _) = (along(jnp.asarray(s)) for s in (0.0, step, -step))
    difference = (above - below) / (2 * step)
    scale = abs(difference) + norm_of(case.arguments)
    assert abs(slope - difference) <= (case.row.tolerance or 1e-6) * scale
    if case.row.order > 1:
        check_grads(case.row.call, case.arguments, order=case.row.order)


ALWAYS = (dtype_follows_the_input,)
IN_32 = (
    wrong_arguments_raise,
    shapes_are_known_without_values,
    jit_equals_eager,
    vmap_equals_a_loop,
)


def promises_of(table):
    """A test with all promises of each row of a table.

    Derivatives at corners and NaN are those of the leg with fewer digits.
    """

    @pytest.mark.slow
    @pytest.mark.parametrize("name", table)
    def test_promises(name, subtests, compilations):
        case = Case(table[name])
        for promise in (*ALWAYS, *(() if IN_64_BIT else IN_32)):
            with subtests.test(promise.__name__):
                promise(case)
        if IN_64_BIT:
            if not case.row.discrete:
                with subtests.test("gradients_against_finite_differences"):
                    gradients_against_finite_differences(case)
            return
        with subtests.test("new_values_compile_nothing"):
            new_values_compile_nothing(case, compilations)
        with subtests.test("other_byte_orders_raise_or_are_understood"):
            other_byte_orders_raise_or_are_understood(case)
        if case.row.discrete:
            with subtests.test("nan_raises"):
                nan_raises(case)
        if case.row.scaling:
            with subtests.test("any_unit_gives_the_same_bits"):
                any_unit_gives_the_same_bits(case)
        if not case.row.discrete:
            with subtests.test("infinity_in_ends_and_shows"):
                infinity_in_ends_and_shows(case)
        for corner, make in case.corners.items() if not case.row.discrete else ():
            with subtests.test("nan_in_gives_nan_out", corner=corner):
                nan_in_gives_nan_out(case, make)
            with subtests.test("gradients_are_finite", corner=corner):
                gradients_are_finite(case, make)

    return test_promises


def functions_of(module):
    """Names of the functions that a module lists as public."""
    names = getattr(module, "__all__", ())
    return {name for name in names if inspect.isroutine(getattr(module, name))}
