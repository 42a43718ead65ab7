r"""A diagnosis says what each source does to a concatenation.

Every cosine is a sum with a term for each source, $\cos(u, v) = \sum_j a_j(u, v)$ with $a_j(u, v) =
\langle e_j(u), e_j(v)\rangle / (|e(u)||e(v)|)$. The *share of the cosine variance* of a source is
$\mathrm{Cov}(a_j, \cos)/\mathrm{Var}(\cos)$ over all pairs of different words. Shares add up to 1,
and one may be negative. No $n \times n$ matrix is formed.
"""

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._types import GivenWeights, Sources
from jaxmeta.combine import concatenate, split_columns
from jaxmeta.linalg import matmul, norm, power_of_two, row_norms, safe_ratio, safe_sqrt
from jaxmeta.noise import effective_rank
from jaxmeta.prepare import centre_rows, standardise, unit_rows
from jaxmeta.progress import Progress, silent
from jaxmeta.spectral import spectrum_of
from jaxmeta.spelling import Separation, WordForms, separation, word_forms

__all__ = ["Diagnosis", "SourceProfile", "cosine_shares", "diagnose", "disagreement", "shown"]

DOMINANT = 2 / 3  # share of the cosine variance above which a source dominates
COMMON = 1 / 2  # length of the mean vector, in rms row norms, that is worth a sentence
# Word forms in vector files of English (`python -m experiments.unseen_pairs`), standardised, stand
# out by 1.3 to 12 standard deviations, and by .01 in noise and in shuffled words. Where files are
# more than 3 apart as they are, the default fell behind the better one in 18 of 19 pairs, but in 13
# of 25 if words spelled alike by chance stand out in one of them .4 times as far; where they are
# less than 1 apart, in 2 of 46.
FORMLESS, APART, SPELLED = 0.4, 3.0, 0.4


class SourceProfile(NamedTuple):
    """One source as it stands in the concatenation, after weights; or the whole of it."""

    name: str
    dimensions: int
    frobenius: float
    row_norm: float
    """Mean length of a row."""
    row_spread: float
    """Standard deviation of the lengths."""
    common_direction: float
    """Length of the mean vector, relative to the rms length of a row; 0 to 1."""
    effective_rank: float
    """(sum of squared singular values)^2 / sum of their fourth powers; 0 for a source of zeros."""
    singular_values: np.ndarray
    """Descending."""
    dimension_share: float
    norm_share: float
    """Share of the squared norm."""
    cosine_share: float
    """Share of the variance of its cosines; NaN if they do not vary."""
    equal_norm_share: float
    """The same if all sources were scaled to the same norm."""


class Diagnosis(NamedTuple):
    """What sources do to a concatenation: rows of matrices are the sources, and then the result."""

    words: int
    sources: tuple[SourceProfile, ...]
    result: SourceProfile
    cka: np.ndarray
    """Centred kernel alignment, 0 to 1."""
    pip_distance: np.ndarray
    """PIP loss at equal norms of the PIP matrices, 0 to the square root of 2."""
    overlap: np.ndarray
    """Mean squared cosine of the angles between leading subspaces of `k` dimensions, 0 to 1."""
    k: int
    disagreements: tuple[tuple[str | int, float], ...]
    """The words (rows, if words were not given) of largest `disagreement`, with it; worst first."""
    separations: tuple[Separation, ...] = ()
    """How far word forms stand out in each source; none if words are not given, or few extend."""
    standardised: tuple[Separation, ...] = ()
    """The same once sources are standardised."""

    @property
    def verdict(self) -> str:
        """A few plain sentences say which source dominates, and why."""
        said = _domination(self.sources)
        for part in self.sources:
            if part.common_direction > COMMON:
                said += f" The mean vector of {part.name} is {part.common_direction:.0%} as long as"
                said += " its rows, which lifts all its cosines alike: subtract it."
        names = [part.name for part in self.sources]
        return " ".join([said, *_on_forms(names, self.separations, self.standardised)])

    def report(self) -> str:
        """The whole diagnosis as text, tables and the verdict."""
        parts = (*self.sources, self.result)
        width = 2 + max(len(part.name) for part in parts)
        lines = [
            f"{self.words:,} words, {len(self.sources)} sources, after weights",
            "",
            f"{'':{width}}       row norm      mean  effective    share of      cosine variance",
            f"{'':{width}}dims   mean    sd  vector       rank  dims  sq.norm   now   equal norms",
        ]
        for part in parts:
            shares = [shown(x, "%") for x in part[-4:]]
            lines.append(
                f"{part.name:{width}}{part.dimensions:>4}{part.row_norm:>7.2f}"
                f"{part.row_spread:>6.2f}{part.common_direction:>8.0%}{part.effective_rank:>11.1f}"
                f"{shares[0]:>6}{shares[1]:>9}{shares[2]:>6}{shares[3]:>14}"
            )
        pairs = list(itertools.combinations(range(len(parts)), 2))
        titles = [f"{parts[i].name} and {parts[j].name}" for i, j in pairs]
        width = 2 + max(map(len, titles))
        lines += ["", f"{'':{width}} CKA  PIP distance  overlap of leading {self.k}"]
        for title, at in zip(titles, pairs, strict=True):
            cka, pip, overlap = (shown(x[at]) for x in (self.cka, self.pip_distance, self.overlap))
            lines.append(f"{title:{width}}{cka:>4}{pip:>14}{overlap:>23}")
        if self.disagreements:
            named = ", ".join(f"{word} {score:.2f}" for word, score in self.disagreements)
            lines += ["", *textwrap.wrap(f"Sources agree least on: {named}.", 90)]
        if self.separations:
            lines += ["", *self._forms(2 + max(len(part.name) for part in self.sources))]
        return "\n".join([*lines, "", *textwrap.wrap(self.verdict, 90)])

    def _forms(self, width: int) -> Iterator[str]:
        yield "Word forms, and words spelled alike by chance, above the mean cosine, in its sd"
        yield f"{'':{width}}  as it is              standardised"
        yield f"{'':{width}}forms  chance  apart   forms  chance  apart"
        for part, *ways in zip(self.sources, self.separations, self.standardised, strict=True):
            numbers = [x for way in ways for x in (way.related, way.chance, way.difference)]
            cells = zip(map(shown, map(float, numbers)), (5, 8, 7, 8, 8, 7), strict=True)
            yield f"{part.name:{width}}" + "".join(f"{cell:>{size}}" for cell, size in cells)

    def __repr__(self) -> str:
        return self.report()


def shown(x: float, kind: str = "") -> str:
    """A number with two digits, or as a share if `kind` is "%"; "?" for NaN."""
    return "?" if np.isnan(x) else f"{x:.0%}" if kind else f"{x:.2f}"


def _domination(sources: Sequence[SourceProfile]) -> str:
    if len(sources) == 1:
        return "There is one source, which cannot dominate another."
    if any(np.isnan(part.cosine_share) for part in sources):
        return "All cosines of the result are the same, so no source decides anything."
    top = max(sources, key=lambda part: part.cosine_share)
    now, equal = (shown(x, "%") for x in (top.cosine_share, top.equal_norm_share))
    if top.cosine_share <= DOMINANT:
        return f"No source dominates: the largest part of the cosine variance is {now}, {top.name}."
    dimensions = f"{top.dimension_share:.0%} of the dimensions"
    said = f"{top.name} dominates: it has {dimensions}, and {now} of the cosine variance."
    others = [part for part in sources if part is not top]
    length = top.frobenius / ((sum(part.frobenius**2 for part in others) / len(others)) ** 0.5 or 1)
    names = " and ".join(part.name for part in others)
    ranks = " and ".join(f"{part.effective_rank:.0f}" for part in others)
    wide = f"its cosines vary more (effective rank {top.effective_rank:.0f} against {ranks})"
    if not any(part.frobenius for part in others):
        return f"{said} All other sources are zero."
    if not top.equal_norm_share < top.cosine_share:
        return f"{said} At equal norms it would have {equal}: {wide}; give it a smaller weight."
    said += f" Its rows are {length:.2g} times as long as those of {names}: scale the sources to "
    said += f"the same norm, which leaves it {equal}."
    still = f" It would dominate even then, since {wide}: give it a smaller weight."
    return said + still if top.equal_norm_share > DOMINANT else said


def _on_forms(
    names: Sequence[str], raw: Sequence[Separation], standardised: Sequence[Separation]
) -> list[str]:
    """Sentences on word forms, where they say something."""
    said, known = [], []
    for name, as_it_is, ready in zip(names, raw, standardised, strict=False):
        if ready.related < FORMLESS:
            said.append(
                f"Words and their forms are no more alike in {name} than other words: it may be"
                " noise, or its words may be in the wrong order."
            )
        elif ready.chance > SPELLED * ready.related:
            said.append(
                f"Words spelled alike by chance stand out in {name} too ({ready.chance:.1f}, word"
                f" forms {ready.related:.1f}), so word forms say little of it."
            )
        elif not np.isnan(as_it_is.difference):
            known.append((float(as_it_is.difference), name))
    most, best = max(known, default=(0.0, ""))
    worse = [(apart, name) for apart, name in known if most - apart > APART]
    if worse:
        others = " and ".join(name for _, name in worse)
        numbers = " and ".join(f"{apart:.1f}" for apart, _ in worse)
        said.append(
            f"{best} separates word forms far better than {others} ({most:.1f} against {numbers}):"
            f" {others} may pull the combination below {best} alone."
        )
    return said


def diagnose(
    sources: Sources,
    weights: GivenWeights | None = None,
    *,
    names: Sequence[str] | None = None,
    words: Sequence[str] | None = None,
    k: int = 50,
    top: int = 10,
    progress: Progress | None = None,
) -> Diagnosis:
    r"""A diagnosis says what each source does to `concatenate(sources, weights)`: print or plot it.

    `names` are those of the sources and `words` those of the rows, by whose forms sources are
    compared (`spelling`) if they have 50 pairs of either kind. Leading subspaces have `k`
    dimensions, or as many as the narrowest source has; `top` words of largest disagreement are
    listed. `progress` is called with "diagnose" and the fraction done. At least 3 words are needed,
    and values that are not finite raise. This is for the host. Cost: $O(nK^2)$, plus a few
    decompositions of $K \times K$ matrices for each pair of sources. CKA: `kornblith19`.

    >>> import jax.numpy as jnp
    >>> short = jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> print(diagnose((short, 6 * short[::-1]), names=("short", "long")).verdict)
    long dominates: it has 50% of the dimensions, and 97% of the cosine variance. Its rows are 6
    times as long as those of short: scale the sources to the same norm, which leaves it 50%.
    """
    _checks.integer("k", k, least=1)
    _checks.integer("top", top, least=0)
    progress = progress or silent
    whole = concatenate(sources, weights)
    n, sizes = len(whole), tuple(source.shape[1] for source in sources)
    names = tuple(names) if names else tuple(f"source {j}" for j in range(len(sizes)))
    _checks.count("names", names, len(sizes))
    if n < 3:
        _checks.fail("sources", f"{n} words", "at least 3", "cosines need pairs of words")
    if words is not None and len(words) != n:
        _checks.fail("words", str(len(words)), str(n), "pass one for each row")
    parts = split_columns(whole, sources)
    rows = np.asarray(_lengths((*parts, whole)), np.float64)
    wrong = np.flatnonzero(~np.isfinite(rows[-1]))
    if wrong.size:
        where = f"row {wrong[0]}" + ("" if words is None else f" ({words[wrong[0]]!r})")
        got = f"a value that is not finite in {where} of the weighted concatenation"
        _checks.fail("sources", got, "numbers", "drop the word, or see predict_missing")
    lengths = np.sqrt(np.sum(rows**2, axis=1))
    norms = lengths[:-1]
    to_equal = norms.max() / np.where(norms > 0, norms, norms.max() or 1)
    shares = np.stack([
        [size / sum(sizes) for size in sizes],
        norms**2 / (np.sum(norms**2) or np.nan),
        cosine_shares(parts, (1.0,) * len(parts)),  # one program for both
        cosine_shares(parts, tuple(map(float, to_equal))),
    ])  # fmt: skip
    shares = np.append(shares, shares.sum(axis=1, keepdims=True), axis=1)
    progress("diagnose", 0.3)
    scores = np.asarray(disagreement(parts)) if len(parts) > 1 else np.full(n, np.nan)
    progress("diagnose", 0.6)
    k = min(k, n, *sizes)
    (means, values, ranks), pairs = jax.tree.map(np.asarray, _compare(whole, sizes, k))
    same = np.eye(len(lengths))
    tables = np.stack([same, 0 * same, same])
    i, j = np.triu_indices(len(same), 1)
    tables[:, i, j] = tables[:, j, i] = pairs
    profiles = []
    for part, (name, size) in enumerate([*zip(names, sizes, strict=True), ("result", sum(sizes))]):
        length, row = lengths[part], rows[part]
        measured = (length, row.mean(), row.std(), means[part] / (length or 1))
        spectrum = (float(ranks[part]) if length else 0.0, values[part, :size])
        profiles.append(SourceProfile(name, size, *measured, *spectrum, *shares[:, part]))
    order = [int(w) for w in np.argsort(-scores, kind="stable")[:top] if not np.isnan(scores[w])]
    worst = tuple((w if words is None else words[w], float(scores[w])) for w in order)
    progress("diagnose", 0.9)
    forms = word_forms(words or ())
    known = jax.tree.map(float, [_separations(e, forms) for e in parts] if forms.enough else [])
    raw, standardised = zip(*known, strict=True) if known else ((), ())
    progress("diagnose", 1.0)
    cka, distance, overlap = tables
    found = (n, tuple(profiles[:-1]), profiles[-1], cka, distance, overlap, k, worst)
    return Diagnosis(*found, raw, standardised)


@jax.jit
def _lengths(sources: Sources) -> Float[Array, "N n"]:
    return jnp.stack([row_norms(source) for source in sources])


@jax.jit
def _separations(source: Float[Array, "n k"], forms: WordForms) -> tuple[Separation, Separation]:
    present = row_norms(source) != 0
    return separation(source, forms), separation(standardise(source, present=present), forms)


@jax.jit(static_argnames=("sizes", "k"))
def _compare(whole: Float[Array, "n K"], sizes: tuple[int, ...], k: int):
    """Mean's length, values and rank of each source and of the whole; tables for all pairs."""
    n, width = whole.shape
    eps = jnp.finfo(whole.dtype).eps
    # R of [1/sqrt(n) E] = QR has all inner products: its first row the means, the others what is
    # left of them. Columns of zeros change none, and sources of one width are compiled for once.
    ones = jnp.full_like(whole, n**-0.5, shape=(n, 1))
    factor = jnp.linalg.qr(jnp.concatenate([ones, whole], axis=1), mode="r")[:, 1:]
    parts = [*jnp.split(factor, np.cumsum(sizes)[:-1], axis=1), factor]
    blocks = jnp.stack([jnp.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in parts])

    def normalised(x):
        vectors, values = spectrum_of(x, alpha=1.0)
        scaled = x / power_of_two(values[0])
        gram = matmul(scaled[1:].T, scaled[1:])
        # What rounding leaves of rows that are all the same is no spread.
        spread = jnp.trace(gram) > (64 * eps * norm(scaled)) ** 2
        centred = scaled[1:] / safe_sqrt(jnp.where(spread, norm(gram), jnp.nan))
        # The norm of a PIP matrix is that of the squares of the singular values.
        equal = safe_ratio(scaled, safe_sqrt(norm((values / power_of_two(values[0])) ** 2)))
        # A source of smaller rank has no such subspace.
        leading = jnp.where(values[k - 1] > 16 * eps * values[0], vectors[:, :k], jnp.nan)
        return (norm(x[0]), values, effective_rank(values)), (centred, equal, leading)

    measures, forms = lax.map(normalised, blocks)

    def compare(pair):
        (e, f), (equal_e, equal_f), (u, v) = ((x[pair[0]], x[pair[1]]) for x in forms)
        cka, overlap = (jnp.sum(matmul(x.T, y) ** 2) for x, y in ((e, f), (u, v)))
        # Of so few rows the PIP matrices themselves are small.
        distance = norm(matmul(equal_e, equal_e.T) - matmul(equal_f, equal_f.T))
        return cka, distance, overlap / k

    pairs = jnp.array(np.triu_indices(len(blocks), 1)).T
    return measures, jnp.stack(lax.map(compare, pairs))


@_checks.checked()
def cosine_shares(sources: Sources, weights: GivenWeights | None = None) -> Float[Array, " N"]:
    """Share of each source in the variance of the cosines of `concatenate(sources, weights)`.

    They add up to 1. The cosine of a row of zeros with another is taken to be 0. NaN for all
    sources if the cosines do not vary by more than rounding. Cost: $O(nK^2)$, one Gram matrix.
    """
    whole = concatenate(sources, weights)
    n, eps = whole.shape[0], jnp.finfo(whole.dtype).eps
    others = float(max(n - 1, 1))  # the square of an integer may be too large for one of JAX
    b = unit_rows(whole)
    centre = jnp.mean(b, axis=0, keepdims=True)
    d = b - centre
    s = matmul(d.T, d) / n

    def per_source(x):
        return jnp.stack([jnp.sum(part, axis=1) for part in split_columns(x, sources)])

    # Columns of this, added up over a source, are the covariance of its part with the whole.
    products = s * (2 * matmul(centre.T, centre) + s)
    pairs = jnp.sum(per_source(products), axis=1) * (n / others)
    # The pairs u = v, as deviations from the mean over all pairs.
    own = per_source(b**2) - per_source(centre**2)
    same = jnp.mean(own * jnp.sum(own, axis=0, keepdims=True), axis=1) / others
    means = jnp.mean(own, axis=1)
    covariance = pairs - same - means * jnp.sum(means) / others**2
    variance = jnp.sum(covariance)
    varies = variance > 16 * eps * jnp.sum(jnp.abs(pairs) + jnp.abs(same)) + (64 * eps) ** 2
    return jnp.where(varies, covariance / jnp.where(varies, variance, 1), jnp.nan)


@_checks.checked()
def disagreement(sources: Sources) -> Float[Array, " n"]:
    r"""$1 - \mathrm{corr}$ of the cosines of a word in two sources: 0 if they agree, 2 if opposite.

    The correlation of $\cos_i(u, v)$ and $\cos_j(u, v)$ is over all *other* words $v$, and its mean
    is over all pairs of sources. NaN for a word with a row of zeros, or with the same cosine to all
    others, in any source. Cost: $O(nk_ik_j)$ for each pair of sources.
    """
    n = concatenate(sources).shape[0]  # which checks them
    if len(sources) < 2:
        _checks.fail("sources", "1", "at least 2", "a source agrees with itself")
    eps = jnp.finfo(sources[0].dtype).eps
    units = [unit_rows(source) for source in sources]
    rows = [(b, centre_rows(b)) for b in units]
    own = [jnp.sum(b * d, axis=1) for b, d in rows]

    def covariance(i, j):
        (b, d), (c, f) = rows[i], rows[j]
        every = jnp.sum(matmul(b, matmul(d.T, f) / n) * c, axis=1)
        return every, every - own[i] * own[j] / max(n - 1, 1)

    every, others = map(
        jnp.stack, zip(*(covariance(j, j) for j in range(len(sources))), strict=True)
    )
    varies = others > 16 * eps * every + (64 * eps) ** 2
    spread = jnp.sqrt(jnp.where(varies, others, 1))
    correlations = [
        covariance(i, j)[1] / (spread[i] * spread[j])
        for i, j in itertools.combinations(range(len(sources)), 2)
    ]
    return jnp.where(jnp.all(varies, axis=0), 1 - sum(correlations) / len(correlations), jnp.nan)
