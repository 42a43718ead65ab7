r"""Observation 1: embeddings mean the same after a rotation.

Printed (section 3.1): two embeddings that a unitary matrix takes into each other are identical; the
PIP loss, which compares inner products, sees it so. It holds.

Proof. $(EQ)(EQ)' = EQQ'E' = EE'$. The converse holds too: $EE' = FF'$ with equal sizes implies
$F = EQ$, by the polar decomposition; so zero loss means equal up to rotation, and the PIP loss is a
metric on embeddings up to rotation.

The library's loss is checked on pairs with different widths, one side rotated.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import pip_loss
from .instances import SPECTRA, Rng, draw_spectrum, frame
from .verdict import Origin, Verdict, both, equal, in_64_bit

CLAIM = "PIP loss of E and EQ is 0; the loss does not see rotations"
ORIGIN = Origin(
    "printed",
    "3.1",
    "two source embeddings are identical if one can be transformed into the other by a "
    "unitary matrix",
    ("pip_matrix", "pip_loss"),
)
PRINTED_HOLDS = True
SHAPES = ((10, 1, 1), (12, 4, 4), (12, 5, 2), (6, 8, 3))


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """E against EQ directly; by the library, EQ against F and the inner products of EQ."""
    rotated, truth, library, changes, scale = [], [], [], [], []
    for n, k, m in SHAPES:
        before, first, second = [], [], []
        for _ in range(instances // len(SHAPES)):
            e = rng.standard_normal((n, k)) * draw_spectrum(rng, k, str(rng.choice(SPECTRA)))
            turned = e @ frame(rng, k)
            near = np.pad(e, ((0, 0), (0, m)))[:, :m] * (1 + 10 ** rng.uniform(-9, 0))
            f = near if rng.random() < 0.5 else rng.standard_normal((n, m))
            rotated.append(pip_loss(e, turned))
            truth.append(pip_loss(e, f))
            scale.append(np.linalg.norm(e @ e.T) + np.linalg.norm(f @ f.T))
            before.append(e @ e.T)
            first.append(turned)
            second.append(f)
        stacked = jnp.stack(first)
        library.append(jax.vmap(jaxmeta.pip_loss)(stacked, jnp.stack(second)))
        products = np.asarray(jax.vmap(jaxmeta.pip.pip_matrix)(stacked))
        changes.append(np.linalg.norm(products - before, axis=(1, 2)))
    losses = equal(np.concatenate(library), truth, scale)
    corrected = both(losses, equal(np.concatenate(changes), 0, scale))
    return Verdict("unitary_invariance", CLAIM, len(truth), equal(rotated, 0, scale), corrected)
