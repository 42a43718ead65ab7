"""Weights by gradient descent: the one training loop, with any optax transformation."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jaxtyping import Array, Float, PyTree

from jaxmeta import _checks
from jaxmeta.linalg import norm

__all__ = ["Minimum", "gradient_weights", "non_negative", "simplex"]


class Minimum(NamedTuple):
    """The best point of a descent, in the form of the start, and the objective there."""

    parameters: PyTree[Float[Array, "..."]]
    value: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    """How far a gradient step of length 1 goes from there after projection: 0 at a minimum."""
    history: Float[Array, " _"]
    """The objective at the start and after each step."""


@_checks.checked(static=("objective", "optimiser", "steps", "project"))
def gradient_weights(
    objective: Callable[..., Float[Array, ""]],
    start: PyTree[Float[Array, "..."]],
    *arguments: Any,
    optimiser: optax.GradientTransformation,
    steps: int,
    project: Callable[[Any], Any] | None = None,
) -> Minimum:
    r"""Weights by descent on `objective(weights, *arguments)`, from `start`, such as a closed form.

    $$\theta_{t+1} = \mathrm{project}(\theta_t + \mathrm{update}(\nabla f(\theta_t)))$$

    The best point seen is returned. Weights are any pytree of arrays; `start` is projected first.
    Functions are static: what changes from call to call belongs in `arguments`. Losses are quartic
    in weights, so a weight of 0 stays 0. On the `simplex`, transformations that rescale every
    coordinate, such as Adam, may stand still; `optax.sgd` does not. Line searches allow no
    projection. Cost: `steps` + 1 evaluations of the objective and its gradient.

    >>> import jax.numpy as jnp, optax
    >>> how = {"optimiser": optax.sgd(0.1), "steps": 100, "project": non_negative}
    >>> found = gradient_weights(lambda x, y: jnp.sum((x - y) ** 2), jnp.ones(1), 2.0, **how)
    >>> print(found.parameters.round(3))
    [2.]
    """
    _checks.integer("steps", steps, least=1)
    allowed = project or (lambda parameters: parameters)
    update = optax.with_extra_args_support(optimiser).update

    def value_at(parameters):
        return objective(parameters, *arguments)

    def step(carry, _):
        (parameters, value, gradient), state, best = carry
        with _lenient():
            change, state = update(
                gradient, state, parameters, value=value, grad=gradient, value_fn=value_at
            )
            parameters = optax.apply_updates(parameters, change)
        point = at(allowed(parameters))
        better = point[1] < best[1]
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), point, best)
        return (point, state, best), point[1]

    def at(parameters):
        return parameters, *jax.value_and_grad(value_at)(parameters)

    first = at(allowed(start))
    carry = (first, optimiser.init(first[0]), first)
    (_, _, (parameters, value, gradient)), values = lax.scan(step, carry, length=steps)
    moved = allowed(jax.tree.map(jnp.subtract, parameters, gradient))
    gone = jax.tree.map(jnp.subtract, parameters, moved)
    distance = norm(jnp.concatenate([jnp.ravel(x) for x in jax.tree.leaves(gone)]))
    return Minimum(parameters, value, distance, jnp.concatenate([first[1][None], values]))


def non_negative(parameters: PyTree[Float[Array, "..."]]) -> PyTree[Float[Array, "..."]]:
    r"""The nearest parameters that are not negative, $\max(\theta, 0)$."""
    jax.tree.map(partial(_checks.native, "parameters"), parameters)
    return optax.projections.projection_non_negative(parameters)


def simplex(parameters: PyTree[Float[Array, "..."]]) -> PyTree[Float[Array, "..."]]:
    """The nearest parameters that are not negative and sum to one, array by array."""
    jax.tree.map(partial(_checks.native, "parameters"), parameters)
    with _lenient():  # optax computes in the default precision, whatever that of x is
        nearest = optax.projections.projection_simplex
        return jax.tree.map(lambda x: nearest(x).astype(x.dtype), parameters)


def _lenient():
    """Optax needs numbers to be promoted, also where a user has asked JAX to be strict."""
    return jax.numpy_dtype_promotion("standard")
