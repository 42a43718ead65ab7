r"""Generated text has an ideal signal that is known exactly.

It is the Markov chain whose neighbours have the joint distribution
$J_{ab} \propto p_a\,p_b\,e^{v_a \cdot v_b}$, with vectors $v_a$ of rank $r$ and Zipfian rates
$p_a \propto 1/(a + 2.7)$: their PMI has rank $r + 2$ at most. $J$ is symmetric, so every word has
distribution $\pi$, the row sums of $J$, and words $d$ places apart have the joint distribution
$J_d = \mathrm{diag}(\pi)\,T^d$ with $T = \mathrm{diag}(\pi)^{-1}J$.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta._files import write_whole

__all__ = ["LatentModel", "expected_counts", "latent_model", "sample_tokens", "write_corpus"]


class LatentModel(NamedTuple):
    """A latent model is a list of words and the distribution of neighbours."""

    words: tuple[str, ...]
    frequencies: Float[np.ndarray, " n"]
    r"""$\pi$, the probability of each word: about descending, as $v$ moves it away from $p$."""
    joint: Float[np.ndarray, "n n"]
    """$J$, the probability of two neighbours. Symmetric; its rows add up to the frequencies."""


def latent_model(n: int, *, rank: int, strength: float, seed: int) -> LatentModel:
    r"""Draw normal vectors of `n` words, $v_{ai} \sim N(0,\ \text{strength}/\sqrt r)$.

    So $v_a \cdot v_b$ has standard deviation `strength` for different words.

    Cost: $O(n^2 r)$.
    """
    _checks.integer("n", n, least=2)
    _checks.integer("rank", rank, least=1, most=n, of="the vocabulary")
    _checks.integer("seed", seed, least=0)
    _checks.scalar("strength", strength)
    do = "pass the standard deviation of PMI, 0.5 for instance"
    if not 0 <= strength < np.inf:
        fail("strength", str(strength), "a finite number that is not negative", do)
    rng = np.random.default_rng(seed)
    vectors = rng.normal(scale=np.sqrt(strength / np.sqrt(rank)), size=(n, rank))
    products = vectors @ vectors.T
    rates = 1 / (np.arange(1, n + 1) + 2.7)
    # The largest exponent is 0: nothing overflows.
    joint = np.outer(rates, rates) * np.exp(products - products.max())
    joint = (joint + joint.T) / (2 * joint.sum())  # symmetric to the last bit
    if not joint.all():
        expected = "one that leaves every pair a probability above 0 in float64"
        fail("strength", str(strength), expected, do)
    return LatentModel(tuple(map(_word, range(n))), joint.sum(axis=1), joint)


def _word(index: int) -> str:
    """Make a word with a syllable for each digit of `index` in base 70, the lowest first."""
    index, digit = divmod(index, 70)
    syllable = "bdfgklmnprstvz"[digit // 5] + "aeiou"[digit % 5]
    return syllable + (_word(index) if index else "")


def expected_counts(
    model: LatentModel,
    *,
    tokens: int,
    documents: int,
    window: int,
    weights: Sequence[float] | np.ndarray | None = None,
) -> Float[np.ndarray, "n n"]:
    r"""$E[X] = \sum_d w_d\,D(L - d)\,(J_d + J_d^\top)$, of symmetric window counts.

    There are $D$ `documents` of $L = \lfloor\text{tokens}/D\rfloor$ words, whose ends no window
    crosses, and distances $d = 1, \ldots,$ `window`, with one of `weights` each (all 1, if None).

    Cost: $O(wn^3)$.

    >>> model = latent_model(3, rank=1, strength=0.5, seed=0)
    >>> float(expected_counts(model, tokens=10, documents=2, window=2).sum().round(6))
    28.0
    """
    length = _length(tokens, documents)
    _checks.integer("window", window, least=1)
    if window >= length:
        expected = f"less than the {length} tokens of a document"
        fail("window", str(window), expected, "use fewer documents, or more tokens")
    weights = np.ones(window) if weights is None else weights
    if len(weights) != window:
        fail("weights", str(len(weights)), str(window), "pass one for each distance")
    transition = model.joint / model.frequencies[:, None]
    apart, counts = model.joint, np.zeros_like(model.joint)
    for distance, weight in enumerate(weights, start=1):
        counts += weight * documents * (length - distance) * (apart + apart.T)
        apart = apart @ transition
    return counts


def sample_tokens(
    model: LatentModel, *, tokens: int, documents: int, seed: int
) -> Int[np.ndarray, "documents length"]:
    r"""Draw `documents` texts of $\lfloor\text{tokens}/\text{documents}\rfloor$ words each.

    Words are numbers, in int32. All documents take a step together: short ones are drawn faster.

    Cost: $O(\log n)$ a word, and memory for the $n^2$ transitions.
    """
    length = _length(tokens, documents)
    _checks.integer("seed", seed, least=0)
    n = len(model.words)
    rng = np.random.default_rng(seed)
    # Distribution functions, one row for each word, and one for the start of a document. Row a goes
    # from a to a + 1, both exactly, so that all rows are one ascending table to search in.
    table = np.cumsum(np.vstack([model.joint, model.frequencies]), axis=1)
    table /= table[:, -1:]
    table += np.arange(n + 1)[:, None]
    places = table.ravel()
    text = np.empty((length, documents), np.int32)
    previous = np.full(documents, n)
    for step in text:
        drawn = np.searchsorted(places, previous + rng.random(documents), side="right")
        # The sum may have been rounded up to the end of the row, where the next one begins.
        previous = np.minimum(drawn - n * previous, n - 1)
        step[:] = previous
    return np.ascontiguousarray(text.T)


def write_corpus(
    path: str | Path, model: LatentModel, text: Int[np.ndarray, "documents length"]
) -> None:
    """Write a text in words, a document to a line; the file is written whole or not at all."""
    words = model.words
    if text.ndim != 2:
        do = "pass text[None] for a single one"
        fail("text", f"an array of shape {text.shape}", "one row for each document", do)
    if np.any((text < 0) | (text >= len(words))):
        got = f"numbers from {text.min()} to {text.max()}"
        expected = f"0 to {len(words) - 1}, one of the words"
        fail("text", got, expected, "draw the text from the same model")
    with write_whole(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        for document in text:
            file.write(" ".join([words[a] for a in document.tolist()]) + "\n")


def _length(tokens: int, documents: int) -> int:
    _checks.integer("tokens", tokens, least=1)
    _checks.integer("documents", documents, least=1, most=tokens, of="the text")
    return tokens // documents
