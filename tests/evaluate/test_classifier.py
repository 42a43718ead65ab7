"""Logistic regressions, many at once, against Newton's method and scikit-learn, one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, EPS, IN_64_BIT, assert_close, cast, exactly, rounded

from jaxmeta.evaluate import classifier
from jaxmeta.evaluate.classifier import logistic_regression, probabilities

TIGHT = 1e-9 if IN_64_BIT else 1e-5
# Of weights: a gradient of TIGHT in the solver's metric leaves about TIGHT / sqrt(strength).
OFF = 100 * TIGHT


def chances_of(scores):
    """Two columns for one score."""
    if scores.shape[1] == 1:
        scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
    scores = scores - scores.max(axis=1, keepdims=True)
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


def objective(x, t, strength, w, b):
    """Mean cross entropy and penalty."""
    full = t if t.shape[1] > 1 else np.concatenate([1 - t, t], axis=1)
    chances = np.maximum(chances_of(x @ w + b), 1e-300)
    return -np.sum(full * np.log(chances)) / len(x) + strength / 2 * np.sum(w**2)


def newton(x, t, strength):
    """The minimum by dense Newton steps, halved until the objective descends."""
    (n, k), c = x.shape, t.shape[1]
    x1 = np.concatenate([x, np.ones((n, 1))], axis=1)
    theta = np.zeros((k + 1, c))
    penalty = strength * np.append(np.ones(k), 0)
    full = t if c > 1 else np.concatenate([1 - t, t], axis=1)
    first = 0 if c > 1 else 1
    for _ in range(100):
        p = chances_of(x1 @ theta)
        gradient = x1.T @ (p - full)[:, first:] / n + penalty[:, None] * theta
        hessian = np.zeros((c, k + 1, c, k + 1))
        for i in range(c):
            for j in range(c):
                weight = p[:, first + i] * ((i == j) - p[:, first + j])
                hessian[i, :, j] = (x1 * weight[:, None]).T @ x1 / n + (i == j) * np.diag(penalty)
        square = hessian.reshape(c * (k + 1), -1)
        # All intercepts may move together: the least-squares solution does not.
        step = np.linalg.lstsq(square, gradient.T.ravel())[0].reshape(c, k + 1).T
        here, length = objective(x, t, strength, theta[:k], theta[k]), 1.0
        while length > 1e-8:
            moved = theta - length * step
            if objective(x, t, strength, moved[:k], moved[k]) <= here:
                break
            length /= 2
        theta = theta - length * step
        if np.abs(step).max() < 1e-13:
            break
    return theta[:k], theta[k] - (theta[k].mean() if c > 1 else 0)


def problem(rng, n=120, k=5, c=1, soft=False):
    """Features with a mean and unequal lengths, and targets that they tell something about."""
    x = rng.normal(size=(n, k)) * np.geomspace(1, 0.1, k) + 0.5
    scores = 2 * x @ rng.normal(size=(k, max(c, 2))) + rng.normal(size=(n, max(c, 2)))
    scores -= scores.mean(axis=0)
    full = chances_of(scores) if soft else np.eye(max(c, 2))[scores.argmax(axis=1)]
    return rounded(x), rounded(full if c > 1 else full[:, 1:])


def solve(x, t, masks, strengths, **options):
    options = {"tolerance": TIGHT} | options
    return logistic_regression(
        cast(x), cast(t), jnp.asarray(masks), cast(np.array(strengths)), **options
    )


@pytest.mark.one_leg
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("c", [1, 2, 3, 5])
def test_every_problem_is_solved_as_if_alone(rng, c, soft):
    x, t = problem(rng, c=c, soft=soft)
    masks = np.array([np.ones(120), np.arange(120) % 3 > 0, np.arange(120) < 80], bool)
    strengths = rounded([1e-3, 1e-2, 1.0])
    fits = solve(x, t, masks, strengths)
    assert fits.weights.shape == (3, 3, 5, c)
    assert fits.weights.dtype == DTYPE
    assert (fits.gradient_norms <= TIGHT).all()
    found = exactly(probabilities(fits, cast(x)))
    for i, strength in enumerate(strengths):
        for j, mask in enumerate(masks):
            w, b = newton(x[mask], t[mask], strength)
            np.testing.assert_allclose(fits.weights[i, j], w, atol=OFF * np.abs(w).max())
            intercepts = exactly(fits.intercepts[i, j])
            if c > 1:  # their mean is free, and starts at that of the centred features, 0
                intercepts = intercepts - intercepts.mean()
            np.testing.assert_allclose(intercepts, b, atol=OFF * np.abs(w).max())
            np.testing.assert_allclose(found[i, j], chances_of(x @ w + b), atol=OFF)


@pytest.mark.one_leg
@pytest.mark.parametrize("classes", [2, 4])
def test_scikit_learn_agrees(rng, classes):
    linear_model = pytest.importorskip("sklearn.linear_model", exc_type=ImportError)
    x, t = problem(rng, n=300, k=8, c=classes)
    targets = t[:, 1:] if classes == 2 else t
    train = np.arange(300) % 4 > 0
    for strength in (1e-3, 1e-1):
        fits = solve(x, targets, train[None], [strength])
        oracle = linear_model.LogisticRegression(
            C=1 / (strength * train.sum()), solver="newton-cg", tol=1e-10, max_iter=1000
        ).fit(x[train], t[train].argmax(axis=1))
        scale = np.abs(oracle.coef_).max()
        np.testing.assert_allclose(fits.weights[0, 0].T, oracle.coef_, atol=1e-6 + OFF * scale)
        np.testing.assert_allclose(
            probabilities(fits, cast(x))[0, 0], oracle.predict_proba(x), atol=1e-6 + OFF
        )


@pytest.mark.parametrize("c", [1, 3])
def test_the_gradient_vanishes(rng, c):
    """That of the objective as it is written down, by automatic differentiation."""
    x, t = problem(rng, c=c, soft=True)

    def loss(w, b):
        scores = cast(x) @ w + b[None, :]
        if c == 1:
            terms = jnp.logaddexp(0, scores) - cast(t) * scores
        else:
            terms = -cast(t) * jax.nn.log_softmax(scores, axis=1)
        return jnp.sum(terms) / len(x) + 0.005 * jnp.sum(w**2)

    fits = solve(x, t, np.ones((1, 120), bool), [0.01])
    gradients = jax.grad(loss, argnums=(0, 1))(fits.weights[0, 0], fits.intercepts[0, 0])
    for gradient in gradients:
        assert_close(gradient, np.zeros(gradient.shape), scale=1, eps=max(EPS, TIGHT))


@pytest.mark.one_leg
def test_the_norm_of_the_gradient_tells_how_far_the_minimum_is(rng):
    x, t = problem(rng, n=300, k=20)
    best = objective(x, t, 1e-3, *newton(x, t, 1e-3))
    before = np.inf
    for steps in range(6):
        fits = solve(x, t, np.ones((1, 300), bool), [1e-3], steps=steps)
        assert fits.steps == steps
        value = objective(x, t, 1e-3, exactly(fits.weights[0, 0]), exactly(fits.intercepts[0, 0]))
        assert value <= before + 16 * EPS
        before, gap = value, float(fits.gradient_norms[0, 0]) ** 2 / 2
        assert gap / 2 < value - best < 16 * gap or value - best < 100 * EPS
    for tolerance in (1e-1, 1e-2):
        fits = solve(x, t, np.ones((1, 300), bool), [1e-3], tolerance=tolerance)
        assert (fits.gradient_norms <= tolerance).all()
        assert fits.steps <= 12


@pytest.mark.one_leg
@pytest.mark.parametrize("c", [1, 3])
def test_no_step_increases_the_objective_of_hard_problems(rng, c):
    """Long features with outliers, hardly penalised: Newton's steps alone overshoot here."""
    x = rounded(rng.standard_t(1.5, size=(60, 4)) * 10)
    t = rounded(np.eye(max(c, 2))[rng.integers(max(c, 2), size=60)])
    t = t if c > 1 else t[:, 1:]
    before = np.inf
    for steps in range(15):
        fits = solve(x, t, np.ones((1, 60), bool), [1e-4], steps=steps)
        value = objective(x, t, 1e-4, exactly(fits.weights[0, 0]), exactly(fits.intercepts[0, 0]))
        assert value <= before + 1000 * EPS
        before = value
    assert value < 0.99 * np.log(max(c, 2))


@pytest.mark.one_leg
@pytest.mark.parametrize("c", [1, 2])
def test_separable_data(c):
    """Without the penalty there would be no minimum."""
    x = rounded(np.concatenate([np.linspace(-2, -1, 20), np.linspace(1, 2, 20)])[:, None])
    t = np.eye(2)[np.repeat([0, 1], 20)][:, -c:]
    for strength in (1e-3, 1e-1):
        fits = solve(x, t, np.ones((1, 40), bool), [strength])
        w, b = newton(x, t, rounded(strength))
        np.testing.assert_allclose(fits.weights[0, 0], w, rtol=10 * OFF)
        np.testing.assert_allclose(fits.intercepts[0, 0], b, atol=10 * OFF * np.abs(w).max())
        right = probabilities(fits, cast(x))[0, 0].argmax(axis=1) == np.repeat([0, 1], 20)
        assert right.all()
    # Two scores share what one does: the penalty of the one counts half.
    one = solve(x, t[:, -1:], np.ones((1, 40), bool), [0.1])
    two = solve(x, np.concatenate([1 - t[:, -1:], t[:, -1:]], 1), np.ones((1, 40), bool), [0.2])
    np.testing.assert_allclose(
        probabilities(one, cast(x)), probabilities(two, cast(x)), atol=10 * OFF
    )


@pytest.mark.one_leg
def test_constant_and_absent_features(rng):
    x, t = problem(rng, k=3)
    mask = np.ones((1, 120), bool)
    alone = solve(x, t, mask, [0.01])
    spoilt = np.concatenate([x, np.full((120, 1), 7.0), np.zeros((120, 1))], axis=1)
    fits = solve(spoilt, t, mask, [0.01])
    np.testing.assert_allclose(fits.weights[0, 0, :3], alone.weights[0, 0], atol=10 * OFF)
    np.testing.assert_allclose(fits.weights[0, 0, 3:], 0, atol=10 * OFF)
    nothing = solve(np.zeros((120, 2)), t, mask, [0.01])
    np.testing.assert_array_equal(nothing.weights, 0)
    share = t.mean()
    np.testing.assert_allclose(nothing.intercepts[0, 0, 0], np.log(share / (1 - share)), atol=OFF)


@pytest.mark.one_leg
@pytest.mark.parametrize(("c", "k"), [(1, 50), (3, 50), (1, 2 * classifier.LEAF + 1)])
def test_more_features_than_rows(rng, c, k):
    """Weights are combinations of rows: the same problem in as many dimensions as there are."""
    x = rounded(rng.normal(size=(20, k)) / np.sqrt(k))
    t = np.eye(max(c, 2))[np.arange(20) % max(c, 2)]
    t = t if c > 1 else t[:, 1:]
    q, r = np.linalg.qr(x.T)
    fits = solve(x, t, np.ones((1, 20), bool), [0.01])
    assert (fits.gradient_norms <= TIGHT).all()
    w, _ = newton(r.T, t, rounded(0.01))
    np.testing.assert_allclose(fits.weights[0, 0], q @ w, atol=OFF * np.abs(w).max())


@pytest.mark.one_leg
def test_a_class_that_is_missing_from_a_mask(rng):
    x, t = problem(rng, c=3)
    few = np.stack([t[:, 2] == 0, t[:, 0] == 1, np.zeros(120, bool)])
    fits = logistic_regression(cast(x), cast(t), jnp.asarray(few), cast(np.array([0.01])))
    assert (fits.gradient_norms <= 1e-3).all()
    found = exactly(probabilities(fits, cast(x)))[0]
    assert np.isfinite(found).all()
    assert (found[0][few[0], 2] < 1e-3).all()
    assert (found[1][few[1], 0] > 0.99).all()
    np.testing.assert_allclose(found[2], 1 / 3, atol=4 * EPS)
    two = logistic_regression(
        cast(x), cast(t[:, :1]), jnp.asarray(few[1:2]), cast(np.array([0.01]))
    )
    assert (probabilities(two, cast(x))[0, 0][few[1], 1] > 0.99).all()


@pytest.mark.one_leg
def test_scaled_features_and_strengths(rng):
    x, t = problem(rng)
    mask = np.ones((1, 120), bool)
    plain = solve(x, t, mask, [0.01])
    for size in (2.0**-20, 2.0**20):
        fits = solve(x * size, t, mask, [0.01 * size**2])
        np.testing.assert_allclose(fits.weights * size, plain.weights, rtol=10 * OFF, atol=OFF)


@pytest.mark.one_leg
def test_as_many_steps_for_ill_conditioned_features(rng):
    """Lengths from 1 to 10^-3, all of which matter at this strength, and hundreds of problems."""
    n, k = 400, 60
    turn = np.linalg.qr(rng.normal(size=(k, k)))[0]
    x = rounded(rng.normal(size=(n, k)) * np.geomspace(1, 1e-3, k) @ turn / np.sqrt(k) + 0.3)
    t = rounded((rng.uniform(size=(n, 1)) < 0.5) | (x[:, :1] > 0.4))
    masks = rng.uniform(size=(50, n)) < 0.8
    fits = solve(x, t, masks, [1e-6, 1e-5, 1e-4, 1e-3], tolerance=1e-3)
    assert (fits.gradient_norms <= 1e-3).all()
    assert fits.steps <= 40


@pytest.mark.one_leg
@pytest.mark.parametrize("m", [1, 33, 100])
def test_inverse_root_by_halves(rng, monkeypatch, m):
    monkeypatch.setattr(classifier, "LEAF", 32)
    a = rng.normal(size=(m, 2 * m))
    a = rounded(a @ a.T / m)
    root = exactly(classifier._inverse_root(cast(a)))
    np.testing.assert_array_equal(np.triu(root, 1), 0)
    values = np.linalg.eigvalsh(a)
    identity = root @ a @ root.T
    np.testing.assert_allclose(identity, np.eye(m), atol=64 * EPS * m * values[-1] / values[0])


@pytest.mark.one_leg
def test_again_without_compilation_and_the_same(rng, compilations):
    x, t = problem(rng)
    masks = np.ones((2, 120), bool)
    first = jax.block_until_ready(solve(x, t, masks, [0.01, 0.1]))
    arguments = cast(x), cast(t), jnp.asarray(masks), cast(np.array([0.01, 0.1]))
    compilations.clear()
    again = jax.block_until_ready(logistic_regression(*arguments, tolerance=TIGHT))
    assert not compilations
    jax.tree.map(np.testing.assert_array_equal, first, again)


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": jnp.ones(4)}, "features: got an array of shape"),
        ({"targets": jnp.ones((3, 1))}, "4 rows in features, 3 rows in targets, 4 rows in masks"),
        ({"masks": jnp.ones((2, 5), bool)}, "4 rows in features, 4 rows in targets, 5 rows in"),
        ({"strengths": jnp.ones((2, 2))}, "strengths: got an array of shape"),
    ],
)
def test_errors(hooked, change, message):
    if hooked:
        pytest.skip("jaxtyping checks the annotations before the library can")
    given = {
        "features": jnp.ones((4, 2)),
        "targets": jnp.ones((4, 1)),
        "masks": jnp.ones((2, 4), bool),
        "strengths": jnp.ones(2),
    }
    with pytest.raises(ValueError, match=message):
        logistic_regression(*(given | change).values())
