"""The training loop on problems with known solutions."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from helpers import DTYPE, EPS, IN_64_BIT, assert_close, assert_trees_close, cast, exactly
from jax.test_util import check_grads

from jaxmeta.optimise import Minimum, gradient_weights, non_negative, simplex

SGD = optax.sgd(0.25)  # on the sum of squares, each step halves the distance
TARGET = {"a": np.array([1.0, -2.0, 0.5]), "b": (np.array(-3.0),)}
START = jax.tree.map(np.zeros_like, TARGET)


def distance(x, target):
    squares = jax.tree.map(lambda p, q: jnp.sum((p - q) ** 2), x, target)
    return sum(jax.tree.leaves(squares), jnp.zeros((), DTYPE))


def run(target=TARGET, start=START, *, optimiser=SGD, steps=60, project=None):
    return gradient_weights(
        distance, cast(start), cast(target), optimiser=optimiser, steps=steps, project=project
    )


def project_simplex(v):
    """The nearest point of the simplex, by bisection on the shift."""
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(v - low, 0)


def test_it_finds_the_minimum_of_any_pytree():
    found = run()
    assert_trees_close(found.parameters, cast(TARGET), scale=3, terms=4)
    assert found.value <= 64 * EPS**2
    assert found.gradient_norm <= 64 * EPS
    assert found.history.shape == (61,)


@pytest.mark.parametrize(
    "optimiser",
    [
        optax.adam(optax.cosine_decay_schedule(0.3, 300)),
        optax.sgd(0.1, momentum=0.5),
        optax.lbfgs(),
        optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.2)),
    ],
    ids=["adam", "momentum", "lbfgs", "clipped"],
)
def test_any_transformation_will_do(optimiser):
    found = run(optimiser=optimiser, steps=300)
    assert found.value <= 1e-5
    assert found.value == jnp.min(found.history)


def test_a_projection_is_a_constraint():
    found = run(project=non_negative)
    expected = jax.tree.map(lambda x: np.maximum(x, 0), TARGET)
    # The value is flat to rounding well before the parameters are.
    assert_trees_close(found.parameters, cast(expected), scale=1, eps=EPS**0.5)
    # At the boundary the gradient does not vanish; what is left of it after projection does.
    assert found.gradient_norm <= 16 * EPS**0.5
    slope = jax.grad(distance)(found.parameters, cast(TARGET))
    assert optax.tree.norm(slope) > 1


def test_the_simplex_is_met_array_by_array(rng):
    target = (rng.normal(size=4), rng.normal(size=3))
    start = (np.ones(4), np.ones(3))
    found = run(target, start, project=simplex)
    for weights, goal in zip(found.parameters, target, strict=True):
        assert_close(jnp.sum(weights), 1.0, scale=1)
        assert jnp.min(weights) >= 0
        assert_close(weights, project_simplex(goal), scale=1, eps=EPS**0.5)


def test_the_start_is_projected():
    found = run(START, TARGET, optimiser=optax.sgd(0.0), steps=1, project=non_negative)
    assert_close(found.history, [1.25, 1.25], scale=1)


@pytest.mark.parametrize("rate", [0.9, 1.0, 1.1, 30.0])
def test_the_best_point_is_kept(rate):
    """Also of a descent that goes astray, or to infinity and NaN."""
    found = run(optimiser=optax.sgd(rate), steps=80)
    history = exactly(found.history)
    assert found.value <= history[0]
    assert found.value == np.nanmin(history)
    assert_close(found.value, distance(found.parameters, cast(TARGET)), scale=history[0])


def test_nan_in_gives_nan_out():
    spoilt = {"a": np.array([1.0, np.nan, 0.5]), "b": (np.array(-3.0),)}
    assert jnp.isnan(run(spoilt).value)
    assert jnp.isnan(run(start=spoilt).value)
    assert jnp.isnan(run(spoilt).gradient_norm)


def test_dtype_follows_the_start():
    start, target = cast((np.zeros(3), np.ones(3)), jnp.float32)
    found = gradient_weights(
        lambda x, y: jnp.sum((x - y) ** 2), start, target, optimiser=SGD, steps=3
    )
    assert {x.dtype for x in jax.tree.leaves(found)} == {jnp.dtype(jnp.float32)}
    assert not any(x.weak_type for x in jax.tree.leaves(found))


def test_jit_equals_eager():
    compiled = jax.jit(
        lambda start: gradient_weights(distance, start, cast(TARGET), optimiser=SGD, steps=5)
    )
    with jax.disable_jit():
        eager = run(steps=5)
    assert_trees_close(compiled(cast(START)), eager, scale=20)


def test_vmap_equals_a_loop(rng):
    targets = cast(rng.normal(size=(3, 4)))

    def one(target):
        return run(target, np.zeros(4), project=non_negative)

    def call(target):
        return gradient_weights(
            distance, jnp.zeros(4), target, optimiser=SGD, steps=60, project=non_negative
        )

    together = jax.vmap(call)(targets)
    alone = jax.tree.map(lambda *xs: jnp.stack(xs), *(one(target) for target in targets))
    assert_trees_close(together, alone, scale=20)


@pytest.mark.skipif(not IN_64_BIT, reason="finite differences keep too few digits in 32 bit")
def test_the_result_is_differentiable(rng):
    start, target = cast((rng.normal(size=3), rng.normal(size=3)))

    def final(start, target):
        start, target = jnp.asarray(start), jnp.asarray(target)
        return gradient_weights(distance, start, target, optimiser=SGD, steps=4)[:2]

    check_grads(final, (start, target), order=1, modes=("fwd", "rev"))


def test_new_values_trace_nothing():
    traces = []

    def counted(x, target):
        traces.append(x)
        return jnp.sum((x - target) ** 2)

    def call(target):
        return gradient_weights(counted, jnp.zeros(2), jnp.full(2, target), optimiser=SGD, steps=7)

    assert isinstance(call(1.0), Minimum)
    before = len(traces)
    call(2.0)
    assert before
    assert len(traces) == before


@pytest.mark.one_leg
@pytest.mark.parametrize("steps", [0, -1, True, 2.0])
def test_steps_are_a_positive_int(steps, hooked):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
    with pytest.raises(
        (TypeError, ValueError), match=r"steps: got .*, expected (an int|at least 1)"
    ):
        run(steps=steps)
