r"""Analogies ask for the word that is to c as b is to a.

A question is answered by the word, of all but a, b and c, that scores highest by a rule. Here are
`three_cos_add` (`levy14`, gensim), `paper_cos_add` (`bollegala22`, and the code that it uses), the
same if all vectors have one length, and `three_cos_mul` (`levy14`); any function like them will do.

Questions share their words, so cosines are computed once for each word, for some candidates at a
time: memory on the device does not grow with the vocabulary.
"""

import math
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from jaxmeta import _checks
from jaxmeta.evaluate.readers import Questions
from jaxmeta.evaluate.scores import Score, accuracy_score, index_words, lookup
from jaxmeta.files import as_vectors
from jaxmeta.linalg import matmul, power_of_two
from jaxmeta.progress import Progress, silent

__all__ = ["Asked", "Rule", "analogy", "paper_cos_add", "three_cos_add", "three_cos_mul"]

TABLE = 1 << 22  # cosines on the device at a time
SCORES = 1 << 19  # scores at a time: they stay in the processor's cache
LEAST = 256  # candidates at a time, however many words are asked for


class Asked(NamedTuple):
    """Asked is what a rule is told of one word, a, b or c, of each of some questions."""

    cosines: Float[Array, "q n"]
    """Its cosine with each candidate; 0 if one of the two is a vector of zeros."""
    lengths: Float[Array, "q 1"]
    """The length of its vector, up to a factor that all questions share."""


Rule: TypeAlias = Callable[[Asked, Asked, Asked], Float[Array, "q n"]]
"""Scores of all candidates for each question, from its a, b and c. It works entry by entry."""


def three_cos_add(a: Asked, b: Asked, c: Asked) -> Float[Array, "q n"]:
    r"""$\cos(d, b) - \cos(d, a) + \cos(d, c)$. References: `mikolov13`, `levy14`."""
    return b.cosines - a.cosines + c.cosines


def paper_cos_add(a: Asked, b: Asked, c: Asked) -> Float[Array, "q n"]:
    r"""$\cos(d, b - a + c)$ times the length of $b - a + c$. Reference: `bollegala22`."""
    return b.lengths * b.cosines - a.lengths * a.cosines + c.lengths * c.cosines


def three_cos_mul(a: Asked, b: Asked, c: Asked) -> Float[Array, "q n"]:
    r"""$\cos'(d, b)\cos'(d, c)/(\cos'(d, a) + .001)$, $\cos' = (1 + \cos)/2$. See `levy14`."""
    near_a, near_b, near_c = ((1 + x.cosines) / 2 for x in (a, b, c))
    return near_b * near_c / (near_a + 0.001)


def analogy(
    vectors: Any,
    questions: Questions,
    *,
    vocabulary: Collection[str] | None = None,
    method: Rule = three_cos_add,
    progress: Progress | None = None,
) -> list[Score]:
    r"""Score vectors by their accuracy in analogies: in all, and then in each section.

    Words are looked up as they stand, else in lower case; of equal candidates the first wins.
    Questions with a missing word are left out, and `covered` counts the rest. One whose fourth word
    is also one of the others is wrong.

    `vocabulary` limits words and candidates; with `common_words`, embeddings answer the same
    questions. Each new `method` is compiled. Scores have the vectors' dtype, at least float32.

    The score of all questions, "Google", comes first; "Google: semantic" and "Google: syntactic"
    follow if only some sections start with "gram", then covered sections, as "Google: currency".

    Cost: $O(mnk + qn)$ for $q$ questions with $m$ words. Reference: `mikolov13`.

    >>> vectors = {"man": [1.0, 0.0], "king": [1.0, 2.0], "woman": [-1.0, 0.1]}
    >>> vectors |= {"queen": [-1.0, 2.0], "the": [0.1, 0.1]}
    >>> (total,) = analogy(vectors, Questions("x", (("Man", "king", "woman", "queen"),), ("y",)))
    >>> total.value, total.covered
    (1.0, 1)
    """
    words, matrix = as_vectors(vectors)
    index = index_words(words, vocabulary)
    places = {word: place for place, word in enumerate(index)}
    found = [[lookup(places, word) for word in question] for question in questions.words]
    asked = np.array(found, np.int32).reshape(-1, 4)
    covered = (asked >= 0).all(axis=1)
    total, asked, known = len(asked), asked[covered], np.asarray(covered)
    right = np.zeros(len(asked), bool)
    if len(asked):
        candidates = np.fromiter(index.values(), np.int64)
        best = _answers(matrix, candidates, asked[:, :3], method, progress or silent)
        # It may be that no candidate is left: then the answer means nothing.
        right = (best == asked[:, 3]) & (asked[:, :3] != asked[:, 3:]).all(axis=1)
    items = np.flatnonzero(covered)
    scores = [accuracy_score(right, task=questions.name, total=total, places=items)]
    sections, names = np.array(questions.sections), dict.fromkeys(questions.sections)
    syntactic = np.char.startswith(sections, "gram")
    parts = {"semantic": ~syntactic, "syntactic": syntactic} if 0 < syntactic.sum() < total else {}
    if len(names) > 1:
        parts |= {name: sections == name for name in names}
    for name, part in parts.items():
        if (part & covered).any():
            task = f"{questions.name}: {name}"
            hits, size, items = right[part[covered]], int(part.sum()), np.flatnonzero(known[part])
            scores.append(accuracy_score(hits, task=task, total=size, places=items))
    return scores


def _answers(
    matrix: np.ndarray, candidates: np.ndarray, asked: np.ndarray, rule: Rule, shown: Progress
) -> np.ndarray:
    """Return the place of the best candidate for each question; candidates are rows of a matrix."""
    dtype = np.result_type(matrix.dtype, np.float32)
    distinct, codes = np.unique(asked, return_inverse=True)
    words, lengths = _unit_rows(_finite(matrix, candidates[distinct]).astype(dtype))
    # Blocks are of one size, so that there is one program, and the last is filled up.
    width = _evenly(len(candidates), max(LEAST, TABLE // len(distinct)))
    height = _evenly(len(asked), max(1, SCORES // width))
    filled = np.zeros((2, -(-len(asked) // height) * height, 3), np.int32)
    filled[0, : len(asked)], filled[1, : len(asked)] = codes.reshape(-1, 3), asked
    blocks, places = filled.reshape(2, -1, height, 3)
    top = np.full(filled.shape[1], -np.inf)
    best = np.zeros(filled.shape[1], np.int64)
    for start in range(0, len(candidates), width):
        shown("analogies", start / len(candidates))
        some = _finite(matrix, candidates[start : start + width])
        tile = np.zeros((width, matrix.shape[1]), dtype)
        tile[: len(some)] = some
        found = _best_of_tile(words, lengths, tile, len(some), blocks, places - start, rule)
        scores, first = (np.asarray(x).ravel() for x in found)
        better = scores > top
        top[better], best[better] = scores[better], start + first[better]
    shown("analogies", 1.0)
    return best[: len(asked)]


def _evenly(n: int, most: int) -> int:
    """Return the size of the fewest equal blocks that hold n, none larger than `most`."""
    return math.ceil(n / math.ceil(n / most))


def _finite(matrix: np.ndarray, rows: np.ndarray) -> np.ndarray:
    found = matrix[rows]
    wrong = ~np.isfinite(found).all(axis=1)
    if wrong.any():
        got = f"NaN or infinity in row {rows[wrong][0]}"
        _checks.fail("vectors", got, "finite numbers", "drop such words")
    return found


@jax.jit
def _unit_rows(x: Float[Array, "n k"]) -> tuple[Float[Array, "n k"], Float[Array, "n 1"]]:
    """Scale rows to length 1, or 0, and return them with their lengths up to a common factor."""
    scale = power_of_two(jnp.max(jnp.abs(x), axis=1, keepdims=True))
    x = x / scale
    lengths = jnp.sqrt(jnp.sum(x**2, axis=1, keepdims=True))
    return x / jnp.where(lengths == 0, 1, lengths), lengths * (scale / jnp.max(scale))


@jax.jit(static_argnames="rule")
def _best_of_tile(
    words: Float[Array, "m k"],
    lengths: Float[Array, "m 1"],
    tile: Float[Array, "n k"],
    count: int | Int[Array, ""],
    codes: Int[Array, "blocks q 3"],
    places: Int[Array, "blocks q 3"],
    rule: Rule,
) -> tuple[Float[Array, "blocks q"], Int[Array, "blocks q"]]:
    """Find the highest score of the first `count` rows of the tile for each question, and its row.

    `codes` are the words of a question, `places` where these are in the tile, if they are.
    """
    cosines = matmul(words, _unit_rows(tile)[0].T)
    place = lax.broadcasted_iota(jnp.int32, (1, tile.shape[0]), 1)

    def block(_, some):
        codes, places = some
        a, b, c = (Asked(cosines[codes[:, j]], lengths[codes[:, j]]) for j in range(3))
        out = place >= count
        for j in range(3):
            out = out | (place == places[:, j : j + 1])
        scores = jnp.where(out, -jnp.inf, rule(a, b, c))
        top = jnp.max(scores, axis=1, keepdims=True)
        # Four times as fast as argmax, on a CPU.
        first = jnp.min(jnp.where(scores == top, place, tile.shape[0]), axis=1)
        return None, (top[:, 0], first)

    _, best = lax.scan(block, None, (codes, places))
    return best
