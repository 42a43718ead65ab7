r"""Lemma 1 in other norms.

Printed (appendix): for *any* unitarily invariant norm, the distance of the two projectors is the
norm of $\mathrm{diag}(\sin\Theta, \sin\Theta)$, $\Theta$ the principal angles. It holds.

Proof. $X_0X_0' - Y_0Y_0'$ is symmetric and, in the basis of the principal vectors, splits into
$2 \times 2$ blocks with eigenvalues $\pm\sin\theta_i$ (and zeros). Singular values, hence every
unitarily invariant norm, agree. Checked for the spectral and the nuclear norm; the Frobenius norm
is `lemma1.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import pip
from .instances import Rng
from .lemma1 import SHAPES, draw_frames
from .verdict import Origin, Verdict, equal, in_64_bit

CLAIM = "spectral and nuclear norm of X0 X0' - Y0 Y0' from the sines"
ORIGIN = Origin(
    "printed",
    "H",
    "For any unit invariant norm",
    ("principal_sines",),
)
PRINTED_HOLDS = True


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Both norms from the singular values of X0' Y1, and from the library's sines."""
    dense, printed, library = [], [], []
    for n, k in SHAPES:
        pairs = [draw_frames(rng, n, k) for _ in range(instances // len(SHAPES))]
        for x, y in pairs:
            difference = np.linalg.svd(pip(x[:, :k]) - pip(y[:, :k]), compute_uv=False)
            across = np.linalg.svd(x[:, :k].T @ y[:, k:], compute_uv=False)
            dense.append((difference.max(), difference.sum()))
            printed.append((across.max(initial=0), 2 * across.sum()))
        stacked = (jnp.stack([pair[side][:, :k] for pair in pairs]) for side in (0, 1))
        sines = jax.vmap(jaxmeta.linalg.principal_sines)(*stacked)
        library.append(np.stack([sines.max(axis=1), 2 * sines.sum(axis=1)], axis=1))
    scale = np.array([1.0, 2 * max(k for _, k in SHAPES)])
    corrected = equal(np.concatenate(library), dense, scale)
    return Verdict("lemma1_any_norm", CLAIM, len(dense), equal(dense, printed, scale), corrected)
