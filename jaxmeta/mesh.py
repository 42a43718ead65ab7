"""Rows spread over many devices, of one machine or of all machines of a cluster.

`shard_rows` gives every device a part of the rows, which the host that has the device reads. What
sums or maps rows takes what it returns: moments, plans, losses, bounds, weights, alignments, axes,
similarity and analogies. All give what they give on one device, up to rounding, and no array with a
number for every row goes from device to device. Programs that are compiled by the caller learn of
the devices from `over_rows`, or from `jax.set_mesh(row_mesh())`.

All devices have equally many rows, so the last are filled up with zeros. These add nothing to
sums and products, but count as rows: `over_rows` takes them away again, in the program.

On several machines call `jax.distributed.initialize` first, and the same functions everywhere, in
the same order. There, arrays are arguments: no function may close over them.
"""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jax.tree_util import Partial
from jaxtyping import Array, Shaped

from jaxmeta import _checks
from jaxmeta._rows import ROWS, as_of, mesh_of
from jaxmeta.eigen import Multiply, multiply_by

__all__ = ["OverRows", "multiply_spread", "over_rows", "row_mesh", "shard_rows"]


def row_mesh(devices: Sequence[jax.Device] | None = None) -> Mesh:
    """The mesh with one axis, "rows", of these devices: of all that all hosts have, if None."""
    found = np.array(jax.devices() if devices is None else devices, object)
    return Mesh(found, (ROWS,), axis_types=(AxisType.Auto,))


def shard_rows(rows: Any, mesh: Mesh | None = None) -> Shaped[Array, "N ..."]:
    """Rows spread over the devices of a mesh, or over all there are, and filled up with zeros.

    Parameters
    ----------
    rows
        An array, or the path of a `.npy` file. Of a file, and of what `np.load(path,
        mmap_mode="r")` returns, every host reads its own rows alone. All hosts pass the same.
    mesh
        Whose devices to use, whatever its axes are.

    The result has as many rows as there are, up to the next multiple of the number of devices: see
    `over_rows`. What is `present` is sharded like the sources, and so are vectors of a `Spectrum`.

    >>> import numpy as np
    >>> sharded = shard_rows(np.ones((5, 2)), row_mesh(jax.devices()[:1]))
    >>> print(sharded.shape, sharded.sharding.mesh.axis_names)
    (5, 2) ('rows',)
    """
    if isinstance(rows, str | Path):
        rows = np.load(rows, mmap_mode="r")
    if not hasattr(rows, "shape") or not rows.shape or not rows.shape[0]:
        got = f"shape {rows.shape}" if hasattr(rows, "shape") else f"a {type(rows).__name__}"
        _checks.fail("rows", got, "an array with rows", "pass one array, or one file, at a time")
    mesh = row_mesh(None if mesh is None else list(mesh.devices.flat))
    n, dtype = rows.shape[0], jax.dtypes.canonicalize_dtype(rows.dtype.newbyteorder("="))
    shape = (n + -n % mesh.size, *rows.shape[1:])

    def own(index: Any) -> np.ndarray:
        start, stop, _ = index[0].indices(shape[0])
        part = np.zeros((stop - start, *shape[1:]), dtype)
        some = np.asarray(rows[start : min(stop, n)])
        part[: len(some)] = some
        return part

    return jax.make_array_from_callback(shape, NamedSharding(mesh, PartitionSpec(ROWS)), own)


@dataclasses.dataclass(frozen=True)
class OverRows:
    """A function compiled for rows that are spread over devices: see `over_rows`."""

    function: Callable[..., Any]
    n: int
    """How many rows there are; what follows is there to fill up."""

    def __call__(self, *arguments: Any) -> Any:
        """The results of the function for the first n rows, on all devices."""
        leaves, spread = self._known(arguments)
        with as_of(leaves):
            return _compiled(self, spread, arguments)

    def lower(self, *arguments: Any) -> Any:
        """The program, as `jax.jit(...).lower` has it: to see what goes between devices."""
        leaves, spread = self._known(arguments)
        with as_of(leaves):
            return _compiled.lower(self, spread, arguments)

    def _known(self, arguments: Any) -> tuple[list[Any], tuple[bool, ...]]:
        """All arrays, and whether each is one of rows."""
        leaves = jax.tree.leaves(arguments)
        spread = tuple(_is_spread(x) for x in leaves)
        for x, rows in zip(leaves, spread, strict=True):
            if rows and not 0 <= x.shape[0] - self.n < x.sharding.mesh.size:
                got, do = f"{x.shape[0]} rows", "pass the number that shard_rows was given"
                _checks.fail("arguments", got, f"n = {self.n}, filled up", do)
        return leaves, spread


def over_rows(function: Callable[..., Any], *, n: int) -> OverRows:
    """`function` compiled for arrays of `shard_rows`, which had n rows before they were filled up.

    Whatever the function computes, it computes of n rows: means, counts and tests of shape are
    exact. Results with a row for each are sharded and filled up like the arguments; all others are
    on every device. Derivatives are taken inside: `over_rows(jax.grad(loss), n=n)`. All arguments
    that have a row for each are sharded. Keep what it returns, as each is compiled anew.

    >>> import numpy as np
    >>> e = shard_rows(np.arange(10.0).reshape(5, 2))
    >>> centred = over_rows(lambda e: e - e.mean(axis=0)[None, :], n=5)(e)
    >>> print(centred[:5].sum(), centred[5:].sum())
    0.0 0.0
    """
    _checks.integer("n", n, least=1)
    return OverRows(function, n)


def multiply_spread(matrix: Any, mesh: Mesh | None = None) -> Multiply:
    """Multiplication by a symmetric matrix with its rows over devices, for `leading_eigenpairs`.

    `matrix` is a dense array or a SciPy sparse one. Products are those of each device's rows with
    a whole block of columns, of n numbers each. What follows them is spread as well if the
    number of devices divides n, and done by all otherwise.

    >>> import scipy.sparse
    >>> multiply = multiply_spread(scipy.sparse.diags_array(np.arange(3.0)))
    >>> print(multiply(jnp.ones((3, 1)))[:, 0])
    [0. 1. 2.]
    """
    if not _checks.is_sparse(matrix):
        return multiply_by(shard_rows(matrix, mesh))
    mesh = row_mesh(None if mesh is None else list(mesh.devices.flat))
    rows, height = matrix.tocsr(), -(-matrix.shape[0] // mesh.size)
    starts = np.minimum(np.arange(mesh.size + 1) * height, rows.shape[0])
    most = int(np.max(np.diff(rows.indptr[starts]), initial=1))

    def on_devices(part: Callable[[Any], np.ndarray], width: int) -> Array:
        def own(index: Any) -> np.ndarray:
            devices = range(mesh.size)[index[0]]
            return np.stack([part(rows[starts[i] : starts[i + 1]]) for i in devices])

        sharding = NamedSharding(mesh, PartitionSpec(ROWS))
        return jax.make_array_from_callback((mesh.size, width), sharding, own)

    def filled(x: np.ndarray, dtype: Any) -> np.ndarray:
        return np.pad(x, (0, most - len(x))).astype(dtype)

    def ends(block: Any) -> np.ndarray:
        """Where rows end; zeros that fill up belong to the last."""
        return np.append(block.indptr[:-1], np.full(height + 1 - block.shape[0], most, np.int32))

    dtype = jax.dtypes.canonicalize_dtype(rows.dtype)
    data = on_devices(lambda block: filled(block.data, dtype), most)
    columns = on_devices(lambda block: filled(block.indices, np.int32), most)
    return Partial(partial(_spread_product, mesh), data, columns, on_devices(ends, height + 1))


@partial(jax.jit, static_argnums=0)
def _spread_product(mesh: Mesh, data: Array, columns: Array, ends: Array, x: Array) -> Array:
    # Few need this import, and it takes half as long as that of JAX.
    from jax.experimental.sparse import BCSR

    def own(data, columns, ends, x):
        shape = (ends.shape[1] - 1, x.shape[0])
        return BCSR((data[0], columns[0], ends[0]), shape=shape) @ x

    spread, whole = PartitionSpec(ROWS), PartitionSpec()
    program = jax.shard_map(
        own, mesh=mesh, in_specs=(spread,) * 3 + (whole,), out_specs=spread, check_vma=False
    )
    return program(data, columns, ends, x)[: x.shape[0]]


def _is_spread(x: Any) -> bool:
    sharding = getattr(x, "sharding", None)
    return isinstance(sharding, NamedSharding) and sharding.spec[:1] == (ROWS,)


@partial(jax.jit, static_argnums=(0, 1))
def _compiled(over: OverRows, spread: tuple[bool, ...], arguments: Any) -> Any:
    leaves, structure = jax.tree.flatten(arguments)

    def call(*leaves):
        return over.function(*jax.tree.unflatten(structure, leaves))

    def one_more(x, rows):
        shape = (over.n + 1, *x.shape[1:]) if rows else x.shape
        return jax.ShapeDtypeStruct(shape, x.dtype)

    def filled(x, other):
        longer = [a != b for a, b in zip(x.shape, other.shape, strict=True)]
        if any(longer):
            x = jnp.pad(x, [(0, fill if each else 0) for each in longer])
        spec = PartitionSpec(*(ROWS if each else None for each in longer))
        return x if mesh is None else jax.lax.with_sharding_constraint(x, spec)

    mesh = mesh_of()
    fill = 0 if mesh is None else -over.n % mesh.shape[ROWS]
    pairs = list(zip(leaves, spread, strict=True))
    out = call(*(x[: over.n] if rows else x for x, rows in pairs))
    # What has a row for each of them has one more if there is one more.
    return jax.tree.map(filled, out, jax.eval_shape(call, *(one_more(*pair) for pair in pairs)))
