r"""The weights that do minimise the PIP loss.

Printed (abstract, section 3.4): differentiating gives the optimal weights, Eq. 8. They are optimal
for the bound's magnitude terms alone (`weights_minimise_loss.py`).

Corrected: with $q = c^2 \ge 0$ and $z_a$ the columns of all sources,

    loss^2 = q'Gq - 2h'q + |E'E|^2,    G_ab = (z_a'z_b)^2,    h_a = |E'z_a|^2,

and $G$ is positive semi-definite, so the optimum is a non-negative least-squares problem
(`jaxmeta.exact_weights`), and loss(exact) <= loss(descent from the closed form) <= loss(closed
form). Proof. $\hat E\hat E' = \sum_a q_az_az_a'$; expand the square. $G$ is the entrywise square
of a Gram matrix, positive semi-definite by Schur's product theorem. Descent that keeps its best
point never ends above its start, and nothing is below the minimum of a convex problem.

Losses are compared by their squares, relative to $|E'E|^2$ plus that of the start: where the best
loss is 0 its own rounding error is the square root of that.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxmeta

from .dense import Array, embedding
from .dimension_weights import draw_positive
from .instances import Instance, Rng
from .verdict import Counterexample, Origin, Verdict, at_most, in_64_bit

CLAIM = "DW minimises the PIP loss over all weights"
ORIGIN = Origin(
    "printed",
    "3.4",
    "their optimal values can be obtained by differentiating w.r.t. those variables",
    ("exact_weights", "gradient_weights"),
)
PRINTED_HOLDS = False
SHAPE = (24, 13, 10)  # words, dimensions of the ideal, of all sources: one shape, one compilation
BATCH = 100
ADAM = optax.adam(0.02)


def padded(instance: Instance) -> tuple[Array, Array, Array]:
    """The ideal's embedding, all columns and the closed form, padded with zeros to one shape."""
    n, d, total = SHAPE
    e = embedding(instance.u, instance.ideal, instance.alpha)
    pairs = zip(instance.q, instance.mu, strict=True)
    z = np.concatenate([embedding(q, mu, instance.alpha) for q, mu in pairs], axis=1)
    weights = jaxmeta.dimension_weights(instance.ideal, tuple(instance.mu), alpha=instance.alpha)
    c = np.concatenate([np.asarray(x) for x in weights])
    e = np.pad(e, ((0, n - e.shape[0]), (0, d - e.shape[1])))
    return (
        e,
        np.pad(z, ((0, n - z.shape[0]), (0, total - z.shape[1]))),
        np.pad(c, (0, total - c.size)),
    )


def objective(c: jax.Array, quadratic: jaxmeta.quadratic.PipQuadratic) -> jax.Array:
    """The PIP loss of weights c."""
    return jaxmeta.quadratic.quadratic_loss(quadratic, c**2)


@jax.vmap
def solve(e, z, start) -> tuple[jax.Array, jax.Array]:
    """Exact weights, and those of descent."""
    quadratic = jaxmeta.pip_quadratic(e, (z,))
    found = jaxmeta.gradient_weights(objective, start, quadratic, optimiser=ADAM, steps=50)
    return jaxmeta.exact_weights(quadratic).weights, found.parameters


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """All three kinds of weights on the instances of Theorem 1."""
    arrays = [np.stack(x) for x in zip(*map(padded, draw_positive(rng, instances)), strict=True)]
    count = -(-instances // BATCH) * BATCH  # filled up, so that all batches have one size
    e, z, start = (np.resize(x, (count, *x.shape[1:])) for x in arrays)
    chain = []
    for i in range(0, count, BATCH):
        rows = slice(i, i + BATCH)
        weights = (*solve(e[rows], z[rows], start[rows]), start[rows])
        chain.append([squares(e[rows], z[rows], np.asarray(c)) for c in weights])
    exact, descent, closed = np.concatenate(chain, axis=1)[:, :instances]
    scale = closed + np.linalg.norm(np.swapaxes(e, 1, 2) @ e, axis=(1, 2))[:instances] ** 2
    return Verdict(
        "exact_weights",
        CLAIM,
        instances,
        at_most(closed, exact, scale),
        at_most([exact, descent], [descent, closed], scale),
    )


def squares(e: Array, z: Array, c: Array) -> Array:
    """Squared PIP losses, by n x n matrices."""
    meta = z * c[:, None, :]
    difference = e @ np.swapaxes(e, 1, 2) - meta @ np.swapaxes(meta, 1, 2)
    return np.linalg.norm(difference, axis=(1, 2)) ** 2


@in_64_bit
def counterexample() -> Counterexample:
    """A source orthogonal to the ideal: any weight but 0 adds to the loss."""
    e, z = jnp.eye(4)[:, :2], jnp.eye(4)[:, 2:]
    (weights,) = jaxmeta.dimension_weights(jnp.ones(2), (jnp.ones(2),), alpha=0.5)
    exact = jaxmeta.exact_weights(jaxmeta.pip_quadratic(e, (z,))).weights
    best, closed, found = (
        float(jaxmeta.pip_loss(e, z * c[None, :])) for c in (jnp.zeros(2), weights, exact)
    )
    setting = "loss for a source orthogonal to the ideal: best possible, DW, exact weights"
    return Counterexample(setting, best, closed, found)
