"""What every public function promises, checked for every one of them.

A row of the table holds a call with arrays for its only arguments, arguments at a generic point
and arguments at degenerate ones. A new public function without a row fails the first test.
"""

import functools
import inspect
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, IN_64_BIT, assert_close, assert_trees_close, cast, rotation
from jax import export
from jax.test_util import check_grads

import jaxmeta
from jaxmeta import Spectrum

WORDS = 7
HOST_ONLY = {"validate"}  # looks at values, so it cannot be traced


class Row(NamedTuple):
    """A public function under test."""

    call: Callable
    generic: Callable
    """From a random generator to arguments where everything is smooth."""
    degenerate: dict[str, Callable]
    """Arguments where values repeat, vanish or coincide."""
    smooth: Callable = lambda out: out
    """The part of the output that has derivatives at degenerate points."""
    totals: Callable = lambda out: [x for x in jax.tree.leaves(out) if x.ndim == 0]
    """Numbers that depend on every argument, so that NaN in any of them must show."""


def frame(rng, k):
    return rotation(rng, WORDS)[:, :k]


def descending(rng, k):
    """Values that are well apart, so that eigenvectors are well conditioned."""
    return np.arange(k, 0, -1) + rng.uniform(0.2, 0.5, k)


def spectrum(rng, k):
    return Spectrum(frame(rng, k), descending(rng, k))


def embedding(rng, k):
    return frame(rng, k) * descending(rng, k)


def bound_arguments(rng):
    return (
        spectrum(rng, 6),
        (spectrum(rng, 2), spectrum(rng, 3)),
        (rng.uniform(0.5, 1.5, 2), rng.uniform(0.5, 1.5, 3)),
        rng.uniform(0.4, 0.6),
        tuple(rng.uniform(0.4, 0.6, 2)),
    )


def aligned(rng):
    """Sources that are the blocks of an ideal of equal values."""
    q = frame(rng, 6)
    sources = (Spectrum(q[:, :2], np.ones(2)), Spectrum(q[:, 2:5], np.ones(3)))
    return Spectrum(q, np.ones(6)), sources, (np.ones(2), np.ones(3)), 0.5, (0.5, 0.5)


def duplicated(rng):
    _, (_, source), _, _, _ = bound_arguments(rng)
    first = Spectrum(source.vectors[:, :2], source.values[:2])
    longer = np.append(source.values, np.zeros(3))
    ideal = Spectrum(np.append(source.vectors, frame(rng, 3), axis=1), longer)
    return ideal, (first, source), (np.ones(2), np.ones(3)), 0.5, (0.5, 0.5)


def all_zero(rng):
    ideal, sources, _, _, _ = bound_arguments(rng)
    ideal, sources = jax.tree.map(np.zeros_like, (ideal, sources))
    return ideal, sources, (np.zeros(2), np.zeros(3)), 0.0, (0.0, 0.25)


BOUND_DEGENERATE = {"aligned": aligned, "duplicated": duplicated, "zero": all_zero}


def weight_arguments(rng):
    ideal, sources, _, alpha, source_alphas = bound_arguments(rng)
    return ideal.values, tuple(source.values for source in sources), alpha, source_alphas


WEIGHTS_DEGENERATE = {
    "equal": lambda rng: (np.ones(5), (np.ones(2), np.ones(3)), 0.5, (0.5, 0.5)),  # noqa: ARG005
    "zero": lambda rng: (np.zeros(5), (np.zeros(2), np.zeros(3)), 0.0, (0.0, 0.25)),  # noqa: ARG005
    "zero ideal": lambda rng: (np.zeros(5), (np.ones(2), np.ones(3)), 0.5, (0.5, 0.5)),  # noqa: ARG005
    "zero source": lambda rng: (np.ones(5), (np.zeros(2), np.ones(3)), 0.5, (0.5, 0.5)),  # noqa: ARG005
}


def twice(make):
    """The same array for both arguments."""

    def arguments(rng):
        x = make(rng)
        return x, x

    return arguments


TABLE = {
    "best_order": Row(
        lambda ideal, sources, weights, alpha, source_alphas: jaxmeta.best_order(
            ideal, sources, weights, alpha=alpha, source_alphas=source_alphas
        ),
        bound_arguments,
        BOUND_DEGENERATE,
        totals=lambda out: [out.tight],
    ),
    "blocks": Row(
        lambda values: jaxmeta.blocks(values, sizes=(2, 3, 2)),
        lambda rng: (descending(rng, 6),),
        {"zero": lambda rng: (np.zeros(6),)},  # noqa: ARG005
    ),
    "bound_terms": Row(
        lambda ideal, sources, weights, alpha, source_alphas: jaxmeta.bound_terms(
            ideal, sources, weights, alpha=alpha, source_alphas=source_alphas
        ),
        bound_arguments,
        BOUND_DEGENERATE,
        totals=lambda out: [out.telescoped, out.split, out.tight],
    ),
    "concatenate": Row(
        jaxmeta.concatenate,
        lambda rng: ((embedding(rng, 2), embedding(rng, 3)), (rng.normal(size=2), rng.normal())),
        {"zero": lambda rng: ((embedding(rng, 2), np.zeros((WORDS, 3))), (np.zeros(2), 0.0))},
    ),
    "decompose": Row(
        lambda signal: jaxmeta.decompose(signal + signal.T),
        lambda rng: ((q := frame(rng, WORDS)) * descending(rng, WORDS) @ q.T / 2,),
        {
            "repeated": lambda rng: (np.eye(WORDS),),  # noqa: ARG005
            "zero": lambda rng: (np.zeros((WORDS, WORDS)),),  # noqa: ARG005
        },
        smooth=lambda out: out.values,
    ),
    "decompose, general": Row(
        lambda signal: jaxmeta.decompose(signal, symmetric=False),
        lambda rng: (embedding(rng, 4) @ rotation(rng, 4),),
        {
            "repeated": lambda rng: (frame(rng, 4),),
            "zero": lambda rng: (np.zeros((WORDS, 4)),),  # noqa: ARG005
        },
        smooth=lambda out: out.values,
    ),
    "dimension_weights": Row(
        lambda ideal, values, alpha, source_alphas: jaxmeta.dimension_weights(
            ideal, values, alpha=alpha, source_alphas=source_alphas
        ),
        lambda rng: (descending(rng, 5), *weight_arguments(rng)[1:]),
        WEIGHTS_DEGENERATE,
    ),
    "embed": Row(
        lambda spectrum, alpha: jaxmeta.embed(spectrum, k=4, alpha=alpha),
        lambda rng: (spectrum(rng, 4), rng.uniform(0.4, 0.6)),
        {
            "zero": lambda rng: (Spectrum(frame(rng, 4), np.zeros(4)), 0.25),
            "no exponent": lambda rng: (Spectrum(frame(rng, 4), np.eye(4)[0]), 0.0),
        },
    ),
    "lemma1": Row(
        jaxmeta.lemma1,
        lambda rng: (frame(rng, 3), frame(rng, 3)),
        {
            "identical": twice(lambda rng: frame(rng, 3)),
            "orthogonal": lambda rng: ((q := frame(rng, 6))[:, :3], q[:, 3:]),
            "zero": twice(lambda rng: np.zeros((WORDS, 3))),  # noqa: ARG005
        },
    ),
    "pip_loss": Row(
        jaxmeta.pip_loss,
        lambda rng: (embedding(rng, 3), embedding(rng, 4)),
        {
            "identical": twice(lambda rng: embedding(rng, 3)),
            "repeated": twice(lambda rng: frame(rng, 3)),
            "duplicated": lambda rng: ((e := embedding(rng, 2)), np.append(e, e, axis=1)),
            "one zero": lambda rng: (embedding(rng, 3), np.zeros((WORDS, 4))),
            "zero": twice(lambda rng: np.zeros((WORDS, 3))),  # noqa: ARG005
        },
    ),
    "pip_matrix": Row(
        jaxmeta.pip_matrix,
        lambda rng: (embedding(rng, 3),),
        {"zero": lambda rng: (np.zeros((WORDS, 3)),)},  # noqa: ARG005
    ),
    "principal_sines": Row(
        jaxmeta.principal_sines,
        lambda rng: (frame(rng, 3), frame(rng, 2)),
        {
            "identical": twice(lambda rng: frame(rng, 3)),
            "orthogonal": lambda rng: ((q := frame(rng, 6))[:, :3], q[:, 3:]),
        },
    ),
    "procrustes": Row(
        jaxmeta.procrustes,
        lambda rng: (embedding(rng, 3), embedding(rng, 3) + 3),
        {
            "identical": twice(lambda rng: embedding(rng, 3)),
            # Equal singular values: the rotation is unique, and smooth.
            "repeated": twice(lambda rng: frame(rng, 3)),
        },
    ),
    "procrustes, to more dimensions": Row(
        jaxmeta.procrustes,
        lambda rng: (embedding(rng, 2), embedding(rng, 4) + 3),
        {"repeated": lambda rng: ((q := frame(rng, 4))[:, :2], q)},
    ),
    "procrustes, to fewer dimensions": Row(
        jaxmeta.procrustes,
        lambda rng: (embedding(rng, 4), embedding(rng, 2) + 3),
        {"repeated": lambda rng: ((q := frame(rng, 4)), q[:, :2])},
    ),
    "source_weights": Row(
        lambda ideal, values, alpha, source_alphas: jaxmeta.source_weights(
            ideal, values, alpha=alpha, source_alphas=source_alphas
        ),
        lambda rng: (descending(rng, 5), *weight_arguments(rng)[1:]),
        WEIGHTS_DEGENERATE,
    ),
    "source_weights, own ideals": Row(
        lambda ideals, values, alpha: jaxmeta.source_weights(ideals, values, alpha=alpha),
        lambda rng: (weight_arguments(rng)[1], *weight_arguments(rng)[1:3]),
        {"zero": lambda rng: ((np.zeros(3),), (np.zeros(3),), 0.0)},  # noqa: ARG005
    ),
    "spectrum_of": Row(
        lambda embedding, alpha: jaxmeta.spectrum_of(embedding, alpha=alpha),
        lambda rng: (embedding(rng, 3) @ rotation(rng, 3), rng.uniform(0.4, 0.6)),
        {
            "repeated": lambda rng: (frame(rng, 3), 0.5),
            "zero": lambda rng: (np.zeros((WORDS, 3)), 0.5),  # noqa: ARG005
        },
        smooth=lambda out: out.values,
    ),
    "sum_to_one": Row(
        jaxmeta.sum_to_one,
        lambda rng: (rng.uniform(0.5, 1.5, 3),),
        {"equal": lambda rng: (np.ones(3),)},  # noqa: ARG005
    ),
    "sum_to_one, dimension weights": Row(
        jaxmeta.sum_to_one,
        lambda rng: ((rng.uniform(0.5, 1.5, 3), rng.uniform(0.5, 1.5, 2)),),
        {"zero among them": lambda rng: ((np.eye(3)[0], np.ones(2)),)},  # noqa: ARG005
    ),
}

rows = pytest.mark.parametrize("row", TABLE.values(), ids=TABLE)
corners = pytest.mark.parametrize(
    ("row", "make"),
    [
        pytest.param(row, make, id=f"{name}: {point}")
        for name, row in TABLE.items()
        for point, make in {"generic": row.generic, **row.degenerate}.items()
    ],
)


def norm_of(tree):
    """What rounding errors are relative to; at least 1, for weights and angles."""
    leaves = [np.asarray(x, np.float64).ravel() for x in jax.tree.leaves(tree)]
    return max(1.0, np.linalg.norm(np.concatenate(leaves)))


def floats(tree):
    return [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]


def total(tree):
    return sum(jnp.sum(x) for x in floats(tree))


def test_every_public_function_has_a_row():
    public = {
        name
        for name, value in vars(jaxmeta).items()
        if not name.startswith("_") and callable(value) and not inspect.isclass(value)
    }
    assert public == {name.split(",")[0] for name in TABLE} | HOST_ONLY


def test_every_name_is_exported():
    """What a module lists as public and is a function of the paper's topics is in `jaxmeta` too."""
    for module in ("bounds", "combine", "pip", "weights"):
        names = getattr(jaxmeta, module).__all__
        assert [name for name in names if not hasattr(jaxmeta, name)] == []


@rows
def test_jit_equals_eager(row, rng):
    arguments = cast(row.generic(rng))
    compiled = jax.jit(row.call)(*arguments)
    with jax.disable_jit():
        eager = row.call(*arguments)
    scale = norm_of(arguments) * norm_of(compiled)
    assert_trees_close(compiled, eager, scale=scale)


@rows
def test_vmap_equals_a_loop(row, rng):
    each = [cast(row.generic(rng)) for _ in range(3)]
    batch = jax.tree.map(lambda *xs: jnp.stack(xs), *each)
    together = jax.vmap(row.call)(*batch)
    one_by_one = jax.tree.map(lambda *xs: jnp.stack(xs), *(row.call(*a) for a in each))
    scale = max(norm_of(a) for a in each) * norm_of(one_by_one)
    assert_trees_close(together, one_by_one, scale=scale)


@rows
@pytest.mark.parametrize("dtype", [jnp.float32] + [jnp.float64] * IN_64_BIT)
def test_dtype_follows_the_input(row, rng, dtype):
    out = row.call(*cast(row.generic(rng), dtype))
    assert floats(out)
    assert {x.dtype for x in floats(out)} == {jnp.dtype(dtype)}
    assert not any(x.weak_type for x in floats(out))


@rows
def test_shapes_are_known_without_values(row, rng):
    arguments = cast(row.generic(rng))
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), arguments)
    expected, out = jax.eval_shape(row.call, *shapes), row.call(*arguments)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), out) == jax.tree.map(
        lambda x: (x.shape, x.dtype), expected
    )


@pytest.fixture
def compilations():
    """Names of the programs that were compiled since the start of the test."""
    names = []

    def listen(event, duration, **_):
        del duration
        if event.endswith("backend_compile_duration"):
            names.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield names
    jax.monitoring.unregister_event_duration_listener(listen)


def test_compilations_are_noticed(compilations):
    jax.jit(lambda x: x + 1)(0.0)
    assert compilations


@rows
def test_new_values_compile_nothing(row, rng, compilations):
    first, second = cast(row.generic(rng)), cast(row.generic(rng))
    # Exponents are Python numbers in scripts, and those must not be static either.
    first, second = (
        jax.tree.map(lambda x: float(x) if x.ndim == 0 else x, a) for a in (first, second)
    )
    jax.block_until_ready(row.call(*first))
    compilations.clear()
    jax.block_until_ready(row.call(*second))
    assert not compilations


@corners
def test_nan_in_gives_nan_out(row, make, rng):
    arguments = cast(make(rng))
    leaves, structure = jax.tree.flatten(arguments)
    for i, leaf in enumerate(leaves):
        # Of an ideal's vectors the last lies beyond all sources, where its value alone counts.
        last = leaf.size - 1 - (leaf.ndim == 2)
        for place in {0, leaf.size // 2, last}:
            spoilt = leaf.ravel().at[place].set(jnp.nan).reshape(leaf.shape)
            out = row.call(*structure.unflatten([*leaves[:i], spoilt, *leaves[i + 1 :]]))
            where = f"argument {i} of {structure}, entry {place}"
            assert any(jnp.isnan(x).any() for x in floats(out)), where
            assert all(jnp.isnan(x) for x in row.totals(out)), where


@functools.cache
def derivatives(name):
    """Backward and forward derivatives of the sum of all outputs, compiled once for all points."""
    row = TABLE[name]

    def f(arguments):
        return total(row.smooth(row.call(*arguments)))

    ones = functools.partial(jax.tree.map, jnp.ones_like)
    return jax.jit(jax.grad(f)), jax.jit(lambda a: jax.jvp(f, (a,), (ones(a),))[1])


@corners
def test_gradients_are_finite(row, make, rng):
    arguments = cast(make(rng))
    (name,) = [name for name, other in TABLE.items() if other is row]
    backward, forward = derivatives(name)
    gradients, slope = backward(arguments), forward(arguments)
    leaves = jax.tree.leaves(gradients)
    assert jax.tree.map(jnp.shape, gradients) == jax.tree.map(jnp.shape, arguments)
    for gradient in (*leaves, slope):
        assert jnp.isfinite(gradient).all(), gradients
    # Along ones, the forward derivative is the sum of the backward ones.
    size = sum(float(jnp.sum(jnp.abs(gradient))) for gradient in leaves)
    expected = sum(float(jnp.sum(gradient)) for gradient in leaves)
    assert_close(slope, expected, scale=size + norm_of(arguments))


@pytest.mark.skipif(not IN_64_BIT, reason="finite differences keep too few digits in 32 bit")
@rows
def test_gradients_against_finite_differences(row, rng):
    """With respect to all arguments: weights, spectra, alpha, embeddings.

    Arguments are moved as NumPy arrays, and are made JAX arrays again for the annotations.
    """
    order = 2 if row is TABLE["pip_loss"] else 1  # said to be differentiable to all orders
    check_grads(
        lambda *arguments: floats(row.call(*jax.tree.map(jnp.asarray, arguments))),
        cast(row.generic(rng)),
        order=order,
        modes=("fwd", "rev"),
    )


@rows
def test_lowers_for_cuda(row, rng):
    """No operation without a kernel there; running it takes a GPU."""
    exported = export.export(jax.jit(row.call), platforms=["cuda"])(*cast(row.generic(rng)))
    assert exported.platforms == ("cuda",)
    assert {x.dtype for x in exported.out_avals if jnp.issubdtype(x.dtype, jnp.floating)} == {DTYPE}


def test_validate_is_for_the_host(rng):
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(jaxmeta.validate)(cast(spectrum(rng, 3)))
