"""Rows that lie on several devices: what the partitioner of XLA would gather is done on each.

Products, sums and maps of rows need none of this. What does, a QR decomposition or a loop over
blocks of rows, looks up the mesh here: that of the array, or the one that `jax.set_mesh` has set.
"""

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float

__all__ = ["ROWS", "along", "apart", "as_of", "mesh_of", "qr", "triangle", "with_mesh_of_first"]

Function = TypeVar("Function", bound=Callable[..., Any])

ROWS = "rows"
"""The name of the axis of devices that rows are spread over."""


def mesh_of(*arrays: Any) -> Mesh | AbstractMesh | None:
    """The mesh over whose devices rows of arrays are spread, or None if there is but one device."""
    for x in arrays:
        # Within a trace arrays do not tell.
        traced = isinstance(x, jax.core.Tracer)
        sharding = x.sharding if isinstance(x, jax.Array) and not traced else None
        if isinstance(sharding, NamedSharding) and _spreads(sharding.mesh):
            return sharding.mesh
    mesh = jax.sharding.get_abstract_mesh()
    return mesh if _spreads(mesh) else None


def _spreads(mesh: Mesh | AbstractMesh) -> bool:
    """Whether there is an axis for rows, of several devices, that is not taken apart already."""
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    return kinds.get(ROWS) == AxisType.Auto and mesh.shape[ROWS] > 1


def as_of(arrays: Sequence[Any]) -> AbstractContextManager[Any]:
    """A context in which programs that are compiled for these arrays know their mesh."""
    if any(isinstance(x, jax.core.Tracer) for x in arrays):
        return nullcontext()
    mesh = mesh_of(*arrays)
    if not isinstance(mesh, Mesh):
        return nullcontext()
    try:
        return jax.set_mesh(mesh)
    except ValueError:  # within a trace, of constants alone
        return nullcontext()


def with_mesh_of_first(function: Function) -> Function:
    """Decorate a loop on the host to make its arrays on the mesh of its first argument."""

    @functools.wraps(function)
    def call(first, *arguments, **settings):
        mesh = mesh_of(*jax.tree.leaves(first))
        # Arrays between programs have equally many rows on every device, or all of them.
        if not isinstance(mesh, Mesh) or settings.get("n", 1) % mesh.size:
            return function(first, *arguments, **settings)
        with jax.set_mesh(mesh):
            return function(first, *arguments, **settings)

    return call  # type: ignore[return-value]


def apart(function: Callable[..., Any], *arrays: Float[Array, "n _"]) -> Any:
    """Results of `function` for the rows that each device has, stacked, and None if it has all.

    Zeros fill up the last rows.
    """
    mesh = mesh_of(*arrays)
    if mesh is None:
        return None
    fill = -arrays[0].shape[0] % mesh.shape[ROWS]
    given = (jnp.pad(x, ((0, fill), (0, 0))) for x in arrays)

    def own(*rows):
        return jax.tree.map(lambda x: x[None], function(*rows))

    spec = PartitionSpec(ROWS)
    return jax.shard_map(own, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(*given)


def triangle(x: Float[Array, "n m"]) -> Float[Array, "_ m"]:
    """The triangular factor R of x = QR. Cost: $2nm^2$ flops."""

    def factor(rows):
        return jnp.linalg.qr(rows, mode="r")

    parts = apart(factor, x)
    return factor(x) if parts is None else factor(parts.reshape(-1, x.shape[1]))


def qr(x: Float[Array, "n m"]) -> tuple[Float[Array, "n _"], Float[Array, "_ m"]]:
    r"""Both factors, for $n \ge m$; they are for values alone, not for derivatives."""
    parts = apart(jnp.linalg.qr, x)
    if parts is None:
        return jnp.linalg.qr(x)
    own, triangles = parts
    turns, r = jnp.linalg.qr(triangles.reshape(-1, x.shape[1]))
    turns = turns.reshape(*triangles.shape[:2], turns.shape[1])
    q = jnp.matmul(own, turns, precision=jax.lax.Precision.HIGHEST)
    return q.reshape(-1, q.shape[2])[: x.shape[0]], r


def along(x: Array, axis: int) -> Array:
    """The array, with this axis over the devices for rows if it can be cut into equal parts."""
    mesh = mesh_of(x)
    if mesh is None or x.shape[axis] % mesh.shape[ROWS]:
        return x
    spec = PartitionSpec(*(None,) * axis, ROWS)
    sharding = NamedSharding(mesh, spec) if isinstance(mesh, Mesh) else spec
    return jax.lax.with_sharding_constraint(x, sharding)
