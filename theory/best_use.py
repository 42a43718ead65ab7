r"""What several sources of one ideal are best used for.

Suggested (abstract, section 1; not stated): with the right weights, concatenation is what several
sources are best used for. The paper compares it with averages of *embeddings*, whose bases differ.
For sources that are noisy views of *one* signal it is not: of $\lambda^{4\alpha}$, the squared PIP
norm of a direction, the best concatenation keeps $T/(1 + T)$ with $T = \sum_jo_j^2/(1 - o_j^2)$;
the stack, decomposed again and shrunk, $(S/(1 + S))^2$ with $S = \sum_jo_j/(1 - o_j)$; the average
of the *signals* $(1 - 1/\sum_jx_j)^2$ with $x_j = \lambda^2/\tau_j^2 = 1/(1 - o_j)$. Each is at
least the one before, and for one source they are the same.

Proof. Views of a direction are $v_j = \sqrt{o_j}\,u + \sqrt{1 - o_j}\,r_j$ with orthonormal $r_j$
(`aligned_weights.py`, which has $T$ too). Of all $a$ the combination $\sum_ja_jv_j$ nearest to $u$
in angle has $a_j \propto \sqrt{o_j}/(1 - o_j)$ and the squared cosine $\|Pu\|^2 = S/(1 + S)$, $P$
the projector onto all views; it is the leading axis of the $v_j/\sqrt{1 - o_j}$, whose Gram matrix
is $I + cc'$ with $c_j^2 = o_j/(1 - o_j)$. Let $F = \sum_kf_kw_kw_k'$ be any concatenation's PIP
matrix, $w_k$ orthonormal and in the span of the views. With the best common factor it keeps
$(u'Fu)^2/\|F\|^2$, and $u'Fu = \sum_kf_k\langle w_k, u\rangle^2 \le \|F\|\sum_k\langle w_k,
u\rangle^2 \le \|F\|\,\|Pu\|^2$: no more than the stack. The average has the noise of
`precision_average.py`, hence the overlap $1 - 1/\sum_jx_j$, and
$S/(1 + S) = 1 - 1/(1 + \sum_j(x_j - 1))$ has $N - 1$ less in the sum.

Where it fails: the average needs signals, of one kind, whose directions are the same. Where only
part of them is shared (no noise, but views of the ideal as above) an average of signals *is* a
concatenation with equal weights, and the stack is at least as good.

Checked on exact views of one direction: the stack of the library and its cosine, by a dense SVD;
the best concatenation by non-negative least squares; averages without noise. And on three noisy
signals of 120 words, where the average is set against the best concatenation that there is, with
the ideal known (in the mean; as noise vanishes the two come to the same).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.optimize

import jaxmeta

from .dense import Array, eigen
from .instances import Rng, frame, symmetric_noise
from .verdict import Counterexample, Tally, Verdict, at_most, both, equal

CLAIM = "weighted concatenation is the best use of several sources"
PRINTED_HOLDS = False
VIEWS = 4
WORDS = 8
SHARED, SIZE = 0.1, 120  # the share of instances that are noisy signals, and their words
IDEAL = np.array([4.0, 3.5, 3.0, 2.5])
NOISE = (0.7, 1.0, 1.0)  # tau of each source


class Kept(NamedTuple):
    """Shares of the squared PIP norm that uses keep, and by how much formulas are off."""

    concatenated: float
    stacked: float
    averaged: float
    unweighted: float
    error: float


def views(rng: Rng) -> tuple[Array, Array, Array]:
    """A direction, overlaps with it, and views that have these; one to four of them count."""
    basis, overlaps = frame(rng, WORDS), rng.uniform(0.2, 0.95, VIEWS)
    overlaps[rng.integers(1, VIEWS + 1) :] = 0
    u, rest = basis[:, :1], basis[:, 1 : VIEWS + 1]
    return basis[:, 0], overlaps, u * np.sqrt(overlaps) + rest * np.sqrt(1 - overlaps)


def uses(u: Array, overlaps: Array, vectors: Array) -> Kept:
    """All uses of exact views of one direction of value 1."""
    seen = overlaps > 0
    o, v = overlaps[seen], vectors[:, seen]
    columns = np.einsum("ia,ja->ija", v, v).reshape(WORDS**2, -1)
    _, left = scipy.optimize.nnls(columns, np.outer(u, u).ravel())
    axis = np.linalg.svd(v / np.sqrt(1 - o))[0][:, 0]
    stacked = float(u @ axis) ** 2
    # A source that sees nothing has its value inside its noise.
    taus, values = np.where(seen, np.sqrt(1 - overlaps), 9), np.where(seen, 2 - overlaps, 1)
    sources = tuple(
        jaxmeta.Spectrum(jnp.asarray(x[:, None]), jnp.asarray([value]))
        for x, value in zip(vectors.T, values, strict=True)
    )
    sigmas = tuple(float(tau) / WORDS**0.5 for tau in taus)
    again = jaxmeta.several.stack_spectra(sources, sigmas=sigmas, alpha=0.5)
    given, found = float(again.values[0]), np.asarray(again.vectors[:, 0])
    t, s, x = (float(np.sum(y)) for y in (o**2 / (1 - o**2), o / (1 - o), 1 / (1 - o)))
    errors = (
        t / (1 + t) - (1 - left**2),
        s / (1 + s) - stacked,
        given - stacked,
        float(u @ found) ** 2 - stacked,
    )
    mean = float(np.linalg.norm(np.outer(u, u) - v @ v.T / o.size))
    return Kept(1 - left**2, stacked**2, (1 - 1 / x) ** 2, 1 - mean**2, float(np.abs(errors).max()))


def signals(rng: Rng) -> tuple[float, float]:
    """Losses of the best concatenation of noisy signals, and of their shrunk average."""
    k, target = IDEAL.size, np.diag(np.pad(IDEAL, (0, SIZE - IDEAL.size)))
    sigmas = tuple(tau / SIZE**0.5 for tau in NOISE)
    noisy = [target + sigma * symmetric_noise(rng, SIZE) for sigma in sigmas]
    z = np.concatenate([eigen(signal)[0][:, :k] for signal in noisy], axis=1)
    root = np.linalg.cholesky((z.T @ z) ** 2)
    linear = IDEAL @ z[:k] ** 2
    best, _ = scipy.optimize.nnls(root.T, np.linalg.solve(root, linear))
    signal, sigma = jaxmeta.several.average_signals(tuple(map(jnp.asarray, noisy)), sigmas)
    vectors, values = eigen(np.asarray(signal))
    given = jaxmeta.noise.spiked_strengths(jnp.asarray(values), sigma=sigma, n=SIZE, alpha=0.5)
    concatenated, averaged = (
        float(np.linalg.norm(target - (q * w) @ q.T))
        for q, w in ((z, best), (vectors, np.asarray(given)))
    )
    return concatenated, averaged


def check(rng: Rng, instances: int) -> Verdict:
    """Exact views of one direction, and noisy signals."""
    dense = round(SHARED * instances)
    kept = Kept(*np.transpose([uses(*views(rng)) for _ in range(instances - dense)]))
    concatenated, averaged = np.transpose([signals(rng) for _ in range(dense)])
    ordered = (at_most(kept[i], kept[i + 1], 1) for i in (0, 1))
    partly = at_most(kept.unweighted, kept.stacked, 1)
    corrected: Tally = equal(kept.error, 0, 1)
    for tally in (*ordered, partly, at_most(averaged.mean(), concatenated.mean(), 1)):
        corrected = both(corrected, tally)
    return Verdict(
        "best_use",
        CLAIM,
        instances,
        both(at_most(kept.stacked, kept.concatenated, 1), at_most(concatenated, averaged, 1)),
        corrected,
    )


def counterexample() -> Counterexample:
    """Two equal views of one direction."""
    overlaps = np.array([0.75, 0.75, 0, 0])
    basis = np.eye(WORDS)
    vectors = basis[:, :1] * np.sqrt(overlaps) + basis[:, 1:5] * np.sqrt(1 - overlaps)
    kept = uses(basis[:, 0], overlaps, vectors)
    setting = "squared norm kept, o = 3/4 twice: stack, best concatenation, (S / (1 + S))^2"
    return Counterexample(setting, kept.stacked, kept.concatenated, (6 / 7) ** 2)
