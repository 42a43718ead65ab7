r"""Lemma 2: singular values of $X_0'Y_1$ are sines of principal angles.

Printed: for $X_0$ with $k$ and $Y_1$ with $n - k$ orthonormal columns,
$X_0'Y_1 = U_0 \sin(\Theta) \tilde V_1'$ is a singular value decomposition, $\Theta$ the principal
angles between $X_0$ and the complement $Y_0$ of $Y_1$. It holds, as the CS decomposition, when
zeros are added or left out where the sizes ($k$ against $n - k$) demand it.

Proof. $X_0'Y_1Y_1'X_0 = I - X_0'Y_0Y_0'X_0$. The singular values of $X_0'Y_0$ are the cosines of
the principal angles, so the eigenvalues of the right side are $1 - \cos^2 = \sin^2$. The printed
proof says the same with a slip in a transpose.

Instances have prescribed angles, down to 1e-12: $Y_0 = X_0\cos\Theta + X_1\sin\Theta$.
"""

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import principal_sines
from .instances import Rng, frame
from .verdict import Origin, Verdict, equal, in_64_bit

CLAIM = "singular values of X0' Y1 are the sines of the principal angles"
ORIGIN = Origin(
    "printed",
    "H",
    "the SVD of their inner-product equals",
    ("principal_sines",),
)
PRINTED_HOLDS = True
SHAPES = ((8, 1), (8, 3), (12, 6), (20, 7))


@in_64_bit
def check(rng: Rng, instances: int) -> Verdict:
    """Prescribed sines against the dense complement and against the library."""
    truth, printed, library = [], [], []
    for n, k in SHAPES:
        xs, ys = [], []
        for _ in range(instances // len(SHAPES)):
            basis = frame(rng, n)
            top = rng.choice([0, -3, -6, -9])
            sines = np.sort(10 ** rng.uniform(top - 3, top, k) * rng.choice([1, 1, 1, 0], k))[::-1]
            x, outside = basis[:, :k], basis[:, k : 2 * k]
            y = (x * np.sqrt(1 - sines**2) + outside * sines) @ frame(rng, k)
            truth.append(np.pad(sines, (0, 10 - k)))
            printed.append(np.pad(principal_sines(x, y), (0, 10 - k)))
            xs.append(x)
            ys.append(y)
        found = jax.vmap(jaxmeta.linalg.principal_sines)(jnp.stack(xs), jnp.stack(ys))
        library.append(np.pad(found, ((0, 0), (0, 10 - k))))
    corrected = equal(np.concatenate(library), truth, 1)
    return Verdict("lemma2", CLAIM, len(truth), equal(printed, truth, 1), corrected)
