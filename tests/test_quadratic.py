"""The quadratic against dense matrices, its minimum against active sets, descent against both."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import oracles
import pytest
import scipy.optimize
from helpers import DTYPE, EPS, IN_64_BIT, assert_close, cast, exactly, rounded
from hypothesis import given
from jax.test_util import check_grads
from strategies import seeds

from jaxmeta import (
    Spectrum,
    bound_terms,
    concatenate,
    dimension_weights,
    embed,
    gradient_weights,
    pip_loss,
    source_weights,
)
from jaxmeta.optimise import non_negative, simplex
from jaxmeta.quadratic import PipQuadratic, exact_weights, per_source, pip_quadratic, quadratic_loss
from jaxmeta.spectral import split_by_source

pytestmark = pytest.mark.slow

WORDS, IDEAL, SIZES = 12, 6, (2, 3, 1)  # one shape for all kinds of problems
WIDTH = sum(SIZES)


def frame(rng, k):
    return np.linalg.qr(rng.normal(size=(WORDS, k)))[0]


def gaussian(rng):
    return rng.normal(size=(WORDS, IDEAL)), rng.normal(size=(WORDS, WIDTH))


def changed(change):
    """A kind of problem: Gaussian ones, with something done to them."""

    def make(rng):
        return change(rng, *gaussian(rng))

    return make


def with_zeros(rng, e, z):
    del rng
    return e, z * np.array([1, 0, 1, 1, 0, 1])


def with_repeated(rng, e, z):
    del rng
    return e, z[:, [0, 1, 0, 2, 1, 0]] * np.array([1, 1, 1, 1, 2, 3])


def nearly_repeated(rng, e, z):
    return e, z[:, :1] + 10.0 ** -rng.uniform(1, 9) * z


def orthogonal(rng, e, z):
    del e, z
    q = frame(rng, IDEAL + WIDTH)
    return q[:, :IDEAL], q[:, IDEAL:]


# From a generator to an ideal and the columns of all sources.
KINDS = {
    "Gaussian": gaussian,
    "the ideal itself": changed(lambda rng, e, z: (z, z)),  # noqa: ARG005
    "a part of the ideal": changed(lambda rng, e, z: (z * (np.arange(WIDTH) > 0), z)),  # noqa: ARG005
    "noisy": changed(lambda rng, e, z: (z + 0.1 * rng.normal(size=z.shape), z)),  # noqa: ARG005
    "zero columns": changed(with_zeros),
    "repeated columns": changed(with_repeated),
    "nearly repeated": changed(nearly_repeated),
    "identical columns": changed(lambda rng, e, z: (e, np.repeat(z[:, :1], WIDTH, 1))),  # noqa: ARG005
    "orthogonal to the ideal": changed(orthogonal),
    "orthonormal": changed(lambda rng, e, z: (e, frame(rng, WIDTH))),  # noqa: ARG005
    "wide range": changed(lambda rng, e, z: (e, z * np.logspace(6, -6, WIDTH))),  # noqa: ARG005
    "large": changed(lambda rng, e, z: (1e6 * e, 1e6 * z)),  # noqa: ARG005
    "small": changed(lambda rng, e, z: (1e-6 * e, 1e-6 * z)),  # noqa: ARG005
    "no ideal": changed(lambda rng, e, z: (0 * e, z)),  # noqa: ARG005
    "no source": changed(lambda rng, e, z: (e, 0 * z)),  # noqa: ARG005
}
UNIQUE = ("Gaussian", "noisy", "orthonormal", "wide range", "zero columns")
kinds = pytest.mark.parametrize("kind", KINDS)


def problem(kind, seed):
    e, z = KINDS[kind](np.random.default_rng(seed))
    e, z = rounded(e), rounded(z)
    return e, tuple(np.split(z, np.cumsum(SIZES)[:-1], axis=1))


def quadratic_of(e, sources):
    return pip_quadratic(cast(e), cast(sources))


def oracle(e, sources):
    """The quadratic from n x n matrices: inner products of z z' and E E'."""
    z = np.concatenate(sources, axis=1)
    parts = np.einsum("ia,ja->aij", z, z).reshape(z.shape[1], -1)
    target = (e @ e.T).ravel()
    return PipQuadratic(parts @ parts.T, parts @ target, target @ target)


def best_loss(e, sources, member=None):
    """The least loss, by an active-set method on n x n matrices, columns scaled to unit length."""
    z = np.concatenate(sources, axis=1)
    parts = np.einsum("ia,ja->ija", z, z).reshape(-1, z.shape[1])
    parts = parts if member is None else parts @ member
    norms = np.linalg.norm(parts, axis=0)
    parts = parts / np.where(norms > 0, norms, 1)
    size = max(np.linalg.norm(e @ e.T), np.finfo(float).tiny)
    target = (e @ e.T).ravel() / size
    squares, _ = scipy.optimize.nnls(parts, target)
    # Where no column helps at all, SciPy 1.17 may return some that harm, and a norm that is wrong.
    return size * min(np.linalg.norm(parts @ squares - target), np.linalg.norm(target))


def in_one_unit(quadratic):
    """In float64 all of it has room."""
    gram, linear, constant, units, ideal_unit = map(exactly, quadratic)
    gram = gram * units**2 * (units**2)[:, None]
    return PipQuadratic(gram, linear * (units * ideal_unit) ** 2, constant * ideal_unit**4)


def loss_of(e, sources, weights):
    z = np.concatenate(sources, axis=1) * exactly(weights)
    return oracles.pip_loss(e, z)


def violation(quadratic, weights):
    """The KKT residual in float64, from its definition."""
    gram, linear, *_ = in_one_unit(quadratic)
    squares = exactly(weights) ** 2
    length = np.sqrt(np.diag(gram))
    there = length > 0
    if not there.any() or not linear[there].any():
        return np.abs(squares).max()
    x, slope = (squares * length)[there], ((gram @ squares - linear)[there] / length[there])
    return np.abs(np.minimum(x, slope)).max() / np.abs(linear[there] / length[there]).max()


@kinds
@given(seed=seeds)
def test_the_quadratic_is_that_of_dense_matrices(kind, seed):
    e, sources = problem(kind, seed)
    expected = oracle(e, sources)
    found = in_one_unit(quadratic_of(e, sources))
    length = np.sqrt(np.diag(expected.gram))
    there = np.where(length > 0, length, 1)
    unit = np.sqrt(expected.constant) or 1.0
    # Relative to the norms of what is multiplied.
    assert_close(
        found.gram / there / there[:, None], expected.gram / there / there[:, None], scale=1
    )
    assert_close(found.linear / there / unit, expected.linear / there / unit, scale=1)
    assert_close(found.constant / unit**2, expected.constant / unit**2, scale=1)


@kinds
@given(seed=seeds)
def test_the_quadratic_is_the_loss(kind, seed):
    e, sources = problem(kind, seed)
    weights = rounded(np.random.default_rng(seed).uniform(0, 2, WIDTH))
    found = exactly(quadratic_loss(quadratic_of(e, sources), cast(rounded(weights**2))))
    scale = sum(np.linalg.norm(x @ x.T) for x in (e, np.concatenate(sources, 1) * weights))
    squared = loss_of(e, sources, weights) ** 2
    assert abs(found**2 - squared) <= 64 * EPS * scale**2


@kinds
@given(seed=seeds)
def test_exact_weights_are_optimal(kind, seed):
    e, sources = problem(kind, seed)
    quadratic = quadratic_of(e, sources)
    solution = exact_weights(quadratic)
    assert jnp.min(solution.weights) >= 0
    assert violation(quadratic, solution.weights) <= 64 * EPS
    assert abs(solution.residual - violation(quadratic, solution.weights)) <= 64 * EPS
    assert solution.steps <= 50
    loss, scale = loss_of(e, sources, solution.weights), np.linalg.norm(e @ e.T)
    # G and h are rounded, so it is the squared loss that is exact up to eps.
    assert loss**2 <= best_loss(e, sources) ** 2 + 64 * EPS * scale**2


@kinds
@given(seed=seeds)
def test_exact_weights_per_source_are_optimal(kind, seed):
    e, sources = problem(kind, seed)
    quadratic = per_source(quadratic_of(e, sources), sizes=SIZES)
    solution = exact_weights(quadratic)
    assert violation(quadratic, solution.weights) <= 64 * EPS
    weights = np.repeat(exactly(solution.weights), SIZES)
    member = np.repeat(np.eye(len(SIZES)), SIZES, axis=0)
    least, scale = best_loss(e, sources, member), np.linalg.norm(e @ e.T)
    assert loss_of(e, sources, weights) ** 2 <= least**2 + 64 * EPS * scale**2


@pytest.mark.parametrize("kind", UNIQUE)
def test_exact_weights_equal_those_of_an_active_set(kind):
    e, sources = problem(kind, 7)
    gram, linear, *_ = oracle(e, sources)
    length = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1))
    values, vectors = np.linalg.eigh(gram / length / length[:, None])
    keep = values > 1e-12
    root = (vectors[:, keep] * np.sqrt(values[keep])).T
    x, _ = scipy.optimize.nnls(root, (vectors[:, keep] / values[keep] ** 0.5).T @ (linear / length))
    found = exactly(exact_weights(quadratic_of(e, sources)).weights) ** 2 * length
    assert_close(found, x, scale=x.max() / values[keep].min(), terms=64)
    np.testing.assert_array_equal(found == 0, x == 0)


def test_sources_that_are_the_ideal_get_weight_one():
    quadratic = quadratic_of(*problem("the ideal itself", 1))
    assert_close(exact_weights(quadratic).weights, np.ones(WIDTH), scale=1, terms=512)
    by_source = exact_weights(per_source(quadratic, sizes=SIZES)).weights
    assert_close(by_source, np.ones(len(SIZES)), scale=1)


def test_one_source_of_one_dimension(rng):
    e, z = rng.normal(size=(WORDS, 2)), rng.normal(size=(WORDS, 1))
    (weight,) = exact_weights(quadratic_of(e, (z,))).weights
    assert_close(weight, np.linalg.norm(e.T @ z) / np.linalg.norm(z) ** 2, scale=1)


def test_columns_of_length_one_beside_others_of_none():
    """Zero columns get exactly zero, and orthogonal ones the closed form."""
    e = np.diag([3.0, 2.0, 1.0])
    quadratic = quadratic_of(e, (np.diag([1.0, 0.0, 1e-3]),))
    assert_close(exact_weights(quadratic).weights / np.array([3, 1, 1e3]), [1, 0, 1], scale=1)


def hard(kind, rng, words=300, width=200):
    """Sources whose Gram matrix is close to singular."""
    e = rng.normal(size=(words, 40)) * np.arange(1, 41) ** -0.5
    if kind == "plain":
        z = rng.normal(size=(words, width)) * np.arange(1, width + 1) ** -0.5
    if kind == "repeated":
        z = np.tile(e[:, :20] + 0.1 * rng.normal(size=(words, 20)), width // 20)
    if kind == "near":
        base = rng.normal(size=(words, width // 4)) * np.arange(1, width // 4 + 1) ** -0.7
        noise = [10.0**-p * rng.normal(size=base.shape) for p in (1, 3, 5, 7)]
        z = np.concatenate([base + x for x in noise], axis=1)
    if kind == "common":
        z = 0.05 * rng.normal(size=(words, width)) + rng.normal(size=(words, 1))
    if kind == "low rank":
        z = e[:, :20] @ rng.normal(size=(20, width)) + 1e-6 * rng.normal(size=(words, width))
    if kind == "steep":
        z = rng.normal(size=(words, width)) * np.logspace(5, -5, width)
    return rounded(e), rounded(z)


@pytest.mark.parametrize("kind", ["plain", "repeated", "near", "common", "low rank", "steep"])
@pytest.mark.parametrize("seed", range(3))
def test_hard_problems_are_solved_to_rounding(kind, seed):
    e, z = hard(kind, np.random.default_rng(seed))
    quadratic = quadratic_of(e, (z,))
    solution = exact_weights(quadratic)
    allowed = 1e-9 if IN_64_BIT else 64 * EPS
    assert violation(quadratic, solution.weights) <= allowed
    assert solution.residual <= allowed
    assert solution.steps < 50


def test_few_steps_are_reported_as_such(rng):
    e, z = hard("near", rng)
    solution = exact_weights(quadratic_of(e, (z,)), steps=2)
    assert solution.steps == 2
    assert solution.residual > 1e-4
    assert_close(solution.residual, violation(quadratic_of(e, (z,)), solution.weights), scale=1)


@kinds
def test_nan_in_gives_nan_out(kind):
    e, sources = cast(problem(kind, 1))
    spoilt = e.at[0, 0].set(jnp.nan), (sources[0], sources[1].at[1, 2].set(jnp.nan), sources[2])
    for arguments in ((spoilt[0], sources), (e, spoilt[1])):
        quadratic = pip_quadratic(*arguments)
        solution = exact_weights(quadratic)
        assert jnp.isnan(solution.weights).all()
        assert jnp.isnan(solution.residual)
        assert jnp.isnan(exact_weights(per_source(quadratic, sizes=SIZES)).weights).all()
        assert jnp.isnan(quadratic_loss(quadratic, jnp.ones(WIDTH)))
    assert jnp.isnan(quadratic_loss(pip_quadratic(e, sources), jnp.ones(WIDTH).at[2].set(jnp.nan)))


def solve(e, sources):
    quadratic = pip_quadratic(e, sources)
    return exact_weights(quadratic).weights, exact_weights(
        per_source(quadratic, sizes=SIZES)
    ).weights


def losses(e, sources, squares):
    quadratic = pip_quadratic(e, sources)
    return quadratic, quadratic_loss(quadratic, squares)


@jax.jit
def gradients(e, sources):
    """Of the exact weights, and of the loss that they have."""
    squares = exact_weights(pip_quadratic(e, sources)).weights ** 2
    of_weights = jax.grad(lambda *a: sum(jnp.sum(w) for w in solve(*a)), argnums=(0, 1))
    of_loss = jax.grad(lambda *a: losses(*a)[1], argnums=(0, 1, 2))
    return of_weights(e, sources), of_loss(e, sources, squares)


@kinds
def test_gradients_are_finite(kind):
    assert all(jnp.isfinite(x).all() for x in jax.tree.leaves(gradients(*cast(problem(kind, 2)))))


compiled = {"weights": jax.jit(solve), "losses": jax.jit(losses)}


@pytest.mark.skipif(not IN_64_BIT, reason="finite differences keep too few digits in 32 bit")
@pytest.mark.parametrize("kind", ["Gaussian", "noisy", "orthonormal"])
def test_gradients_against_finite_differences(kind):
    """Weights move with the embeddings while the zeros stay where they are."""
    e, sources = problem(kind, 3)
    check_grads(compiled["weights"], (e, sources), order=1, modes=("fwd", "rev"), eps=1e-6)
    squares = np.linspace(0.5, 1, WIDTH)
    check_grads(compiled["losses"], (e, sources, squares), order=2, modes=("fwd", "rev"))


def squared_weights_loss(weights, quadratic):
    return quadratic_loss(quadratic, jnp.concatenate(jax.tree.leaves(weights)) ** 2)


def true_loss(weights, ideal, sources):
    return pip_loss(ideal, concatenate(sources, weights))


def bound(weights, ideal, sources, alpha):
    return bound_terms(ideal, sources, weights, alpha=alpha).tight


ADAM = optax.adam(optax.cosine_decay_schedule(0.05, 300))
descend = functools.partial(gradient_weights, optimiser=ADAM, steps=300)


def sources_with_noise(seed, *, alpha=0.5, words=30):
    """An ideal and two noisy sources of it, as spectra: what closed forms are made for."""
    rng = np.random.default_rng(seed)
    values = 8 * np.arange(1, words + 1) ** -0.7
    vectors = np.linalg.qr(rng.normal(size=(words, words)))[0]
    spectra = []
    for level, k in ((0.1, 6), (0.2, 4)):
        noise = level * rng.normal(size=(words, words))
        strengths, q = np.linalg.eigh((vectors * values) @ vectors.T + noise + noise.T)
        order = np.argsort(-np.abs(strengths))[:k]
        spectra.append(Spectrum(q[:, order], np.abs(strengths[order])))
    ideal, spectra = cast(Spectrum(vectors, values)), cast(tuple(spectra))
    embeddings = tuple(embed(s, k=s.values.shape[0], alpha=alpha) for s in spectra)
    return ideal, spectra, embed(ideal, k=words, alpha=alpha), embeddings


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("objective", ["quadratic", "loss"])
def test_exact_is_below_descent_is_below_closed_form(seed, alpha, objective):
    ideal, spectra, e, sources = sources_with_noise(seed, alpha=alpha)
    sizes = tuple(source.shape[1] for source in sources)
    own = tuple(ideal.values[:k] for k in sizes)
    values = tuple(s.values for s in spectra)
    quadratic = pip_quadratic(e, sources)
    for rule, form in (
        (dimension_weights, quadratic),
        (source_weights, per_source(quadratic, sizes=sizes)),
    ):
        closed = rule(own, values, alpha=alpha)
        exact = exact_weights(form).weights
        if rule is dimension_weights:
            exact = split_by_source(exact, sizes=sizes)
        if objective == "loss":
            found = descend(true_loss, closed, e, sources, project=non_negative)
        else:
            found = descend(squared_weights_loss, closed, form, project=non_negative)
        least, middle, most = (
            float(true_loss(w, e, sources)) for w in (exact, found.parameters, closed)
        )
        rounding = 64 * EPS * float(jnp.sqrt(quadratic.constant))
        assert least <= middle + rounding
        assert middle <= most + rounding
        assert middle < 0.999 * most  # it did go down
        assert middle <= 1.01 * least  # most of the way
        assert found.value == jnp.min(found.history)


def test_descent_on_the_bound():
    """It lowers the bound, which is not the loss."""
    ideal, spectra, e, sources = sources_with_noise(4)
    values = tuple(s.values for s in spectra)
    start = dimension_weights(ideal.values, values, alpha=0.5)
    found = descend(bound, start, ideal, spectra, 0.5, project=non_negative)
    assert found.value < 0.99 * bound(start, ideal, spectra, 0.5)
    assert true_loss(found.parameters, e, sources) <= found.value


def test_descent_on_the_simplex():
    """As the paper has it: weights sum to one, for source weights or source by source."""
    _, _, e, sources = sources_with_noise(5)
    sizes = tuple(source.shape[1] for source in sources)
    quadratic = pip_quadratic(e, sources)
    by_source = per_source(quadratic, sizes=sizes)
    each = tuple(jnp.full(k, 1 / k) for k in sizes)
    sgd = optax.sgd(0.02)
    grid = jnp.linspace(0, 1, 1001, dtype=DTYPE)
    every = jax.vmap(lambda c: quadratic_loss(by_source, jnp.stack([c, 1 - c]) ** 2))(grid)
    for start, form in ((jnp.full(2, 0.5, DTYPE), by_source), (each, quadratic)):
        found = descend(squared_weights_loss, start, form, optimiser=sgd, project=simplex)
        for weights in jax.tree.leaves(found.parameters):
            assert_close(jnp.sum(weights), 1.0, scale=1)
            assert jnp.min(weights) >= 0
        assert found.value < 0.99 * true_loss(start, e, sources)
        assert_close(found.value, true_loss(found.parameters, e, sources), scale=1, eps=EPS**0.5)
        if form is by_source:
            assert_close(found.value, jnp.min(every), scale=found.value, eps=1e-6)


def test_descent_in_squares_is_convex():
    """From zero too, where the slope by weights vanishes."""
    _, _, e, sources = sources_with_noise(6)
    quadratic = pip_quadratic(e, sources)

    def squares_loss(squares, quadratic):
        return quadratic_loss(quadratic, squares)

    found = descend(squares_loss, jnp.zeros(10), quadratic, project=non_negative)
    least = quadratic_loss(quadratic, exact_weights(quadratic).weights ** 2)
    assert least <= found.value + 64 * EPS * jnp.sqrt(quadratic.constant)
    assert found.value <= 1.001 * least


@pytest.mark.parametrize("exponents", [(30, -40), (-20, 50), (0, 55)])
def test_columns_of_any_length(rng, exponents):
    """Fourth powers are in units of their own, also where a source has both long and short ones."""
    e, z = rounded(rng.normal(size=(9, 3))), rounded(rng.normal(size=(9, 5)))
    first, second = (np.ldexp(1.0, exponent) for exponent in exponents)
    scales = np.array([1, 1, first, first, first]) * second
    sources = z[:, :2] * scales[:2], z[:, 2:] * scales[2:]
    near, far = quadratic_of(e, (z[:, :2], z[:, 2:])), quadratic_of(e, sources)
    weights = exactly(exact_weights(far).weights)
    np.testing.assert_array_equal(weights * scales, exactly(exact_weights(near).weights))
    squares = cast(rounded(rng.uniform(0.5, 1.5, 5)))
    expected = exactly(quadratic_loss(near, squares))
    np.testing.assert_array_equal(exactly(quadratic_loss(far, cast(squares / scales**2))), expected)
    together = per_source(far, sizes=(5,))
    long = z * scales / scales.max()
    expected = per_source(quadratic_of(e, (long,)), sizes=(5,))
    np.testing.assert_array_equal(
        exactly(exact_weights(together).weights) * scales.max(),
        exactly(exact_weights(expected).weights),
    )


GOOD = PipQuadratic(jnp.eye(3), jnp.ones(3), jnp.ones(()))
ERRORS = {
    "sizes": (
        lambda: per_source(GOOD, sizes=(1, 1)),
        ValueError,
        ("sizes: got (1, 1), 2 in all, expected 3", "pass the widths"),
    ),
    "squares": (
        lambda: quadratic_loss(GOOD, jnp.ones(2)),
        ValueError,
        ("squares: got shape (2,), expected (3,)", "see per_source"),
    ),
    "no quadratic": (
        lambda: exact_weights((jnp.eye(3), jnp.ones(3), jnp.ones(()))),
        TypeError,
        ("quadratic: got a tuple, expected a PipQuadratic", "see pip_quadratic"),
    ),
    "a gram that does not fit": (
        lambda: exact_weights(GOOD._replace(gram=jnp.eye(2))),
        ValueError,
        ("quadratic.gram: got shape (2, 2), expected (3, 3)", "see pip_quadratic"),
    ),
    "no steps": (lambda: exact_weights(GOOD, steps=0), ValueError, ("steps: got 0", "at least 1")),
}


@pytest.mark.one_leg
@pytest.mark.parametrize(("call", "error", "words"), ERRORS.values(), ids=ERRORS)
def test_errors_say_what_to_do(call, error, words, hooked):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
