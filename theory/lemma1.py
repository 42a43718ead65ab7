r"""Lemma 1: the distance of two projectors.

Printed: for orthogonal $X = [X_0, X_1]$ and $Y = [Y_0, Y_1]$, $X_0$ and $Y_0$ with $k$ columns,
$\|X_0X_0' - Y_0Y_0'\|_F = \sqrt2\,\|X_0'Y_1\|_F$. It holds. (The proof writes $X_0'X_0 = I_n$ where
$I_k$ is meant.)

Proof. Both projectors have trace $k$, so the squared left side is $2k - 2\|X_0'Y_0\|^2$. Each row
of $X_0'[Y_0, Y_1]$ has unit length, so $\|X_0'Y_0\|^2 + \|X_0'Y_1\|^2 = k$. Together:
$2\|X_0'Y_1\|^2$.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array, projector_distance
from .instances import Rng, frame, nearly
from .verdict import Origin, Verdict, equal, in_64_bit

CLAIM = "|X0 X0' - Y0 Y0'| = sqrt 2 |X0' Y1|"
ORIGIN = Origin(
    "printed",
    "A",
    "Let $X$, $Y$ be two orthonormal matrices … the following holds for the Frobenius norm",
    ("lemma1",),
)
PRINTED_HOLDS = True
SHAPES = ((8, 1), (8, 3), (9, 6), (6, 6), (20, 10))


def draw_frames(rng: Rng, n: int, k: int) -> tuple[Array, Array]:
    """Two complete frames whose first k columns span the same, nearby, any or orthogonal spaces."""
    x = frame(rng, n)
    kind = rng.integers(4)
    if kind == 0:
        turn = np.eye(n)
        turn[:k, :k] = frame(rng, k)
        return x, x @ turn
    if kind == 1:
        return x, nearly(rng, x, 0)
    if kind == 2:
        return x, np.roll(x, -rng.integers(n), axis=1)
    return x, frame(rng, n)


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Left and right side by dense matrices, and as the library computes them."""
    left, right, library, truth = [], [], [], []
    for n, k in SHAPES:
        count = instances // len(SHAPES)
        pairs = [draw_frames(rng, n, k) for _ in range(count)]
        left += [projector_distance(x[:, :k], y[:, :k]) for x, y in pairs]
        right += [np.sqrt(2) * np.linalg.norm(x[:, :k].T @ y[:, k:]) for x, y in pairs]
        x, y = (jnp.stack([pair[side][:, :k] for pair in pairs]) for side in (0, 1))
        sides = jax.vmap(jaxmeta.bounds.lemma1)(x, y)
        library += [sides.left, sides.right]
        truth += [left[-count:]] * 2
    scale = np.sqrt(max(k for _, k in SHAPES))
    corrected = equal(np.concatenate(library), np.concatenate(truth), scale)
    return Verdict("lemma1", CLAIM, len(left), equal(left, right, scale), corrected)
