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

from jaxmeta import _checks, _rows
from jaxmeta.evaluate._spread import is_spread, rows_of, words_and_matrix
from jaxmeta.evaluate.readers import Questions
from jaxmeta.evaluate.scores import Score, accuracy_score, index_words, lookup
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
    words, matrix = words_and_matrix(vectors)
    index = index_words(words, vocabulary)
    places = {word: place for place, word in enumerate(index)}
    found = [[lookup(places, word) for word in question] for question in questions.words]
    asked = np.array(found, np.int32).reshape(-1, 4)
    covered = (asked >= 0).all(axis=1)
    total, asked = len(asked), asked[covered]
    right = np.zeros(len(asked), bool)
    if len(asked):
        candidates = np.fromiter(index.values(), np.int64)
        best = _answers(matrix, candidates, asked[:, :3], method, progress or silent)
        # It may be that no candidate is left: then the answer means nothing.
        right = (best == asked[:, 3]) & (asked[:, :3] != asked[:, 3:]).all(axis=1)
    at = np.flatnonzero(covered)
    scores = [accuracy_score(right, task=questions.name, total=total, places=at)]
    sections, names = np.array(questions.sections), dict.fromkeys(questions.sections)
    syntactic = np.char.startswith(sections, "gram")
    parts = {"semantic": ~syntactic, "syntactic": syntactic} if 0 < syntactic.sum() < total else {}
    if len(names) > 1:
        parts |= {name: sections == name for name in names}
    for name, part in parts.items():
        if (part & covered).any():
            task, at = f"{questions.name}: {name}", np.flatnonzero(np.asarray(covered)[part])
            own = right[part[covered]]
            scores.append(accuracy_score(own, task=task, total=int(part.sum()), places=at))
    return scores


def _answers(
    matrix: Any, candidates: np.ndarray, asked: np.ndarray, rule: Rule, shown: Progress
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
    if is_spread(matrix):
        found = _best_of_devices(words, lengths, matrix, candidates, blocks, places, rule, width)
        return found[: len(asked)]
    top = np.full(filled.shape[1], -np.inf)
    best = np.zeros(filled.shape[1], np.int64)
    for start in range(0, len(candidates), width):
        shown("analogies", start / len(candidates))
        some = _finite(matrix, candidates[start : start + width])
        tile = np.zeros((width, matrix.shape[1]), dtype)
        tile[: len(some)] = some
        own = np.where(np.arange(width) < len(some), np.arange(width), -1).astype(np.int32)
        found = _best_of_tile(words, lengths, tile, own, blocks, places - start, rule)
        scores, first = (np.asarray(x).ravel() for x in found)
        better = scores > top
        top[better], best[better] = scores[better], start + first[better]
    shown("analogies", 1.0)
    return best[: len(asked)]


def _best_of_devices(
    words: Array,
    lengths: Array,
    matrix: Any,
    candidates: np.ndarray,
    blocks: np.ndarray,
    places: np.ndarray,
    rule: Rule,
    width: int,
) -> np.ndarray:
    """Return the same, of rows on several devices: each has its own best, and all are compared."""
    mesh = matrix.sharding.mesh
    after = np.zeros((len(matrix), 1), np.int32)
    after[candidates, 0] = 1 + np.arange(len(candidates))
    spread = jax.make_array_from_callback(after.shape, matrix.sharding, after.__getitem__)
    small = (np.asarray(x) for x in (words, lengths, blocks, places))
    with jax.set_mesh(mesh):
        best, wrong = _spread_best(*small, matrix, spread, rule, width)
    if wrong >= 0:
        _refuse(candidates[int(wrong)])
    return np.asarray(best).ravel()


@jax.jit(static_argnames=("rule", "width"))
def _spread_best(words, lengths, blocks, places, matrix, after, rule, width):
    """The best place for each question, and that of a candidate which is not finite, or -1."""

    def own(rows, after):
        fill = -len(rows) % width
        tiles = jnp.pad(rows, ((0, fill), (0, 0))).reshape(-1, width, rows.shape[1])
        places_of = jnp.pad(after[:, 0] - 1, (0, fill), constant_values=-1).reshape(-1, width)

        def step(best, tile):
            tile, own = tile
            found = _best_of_tile(words, lengths, tile, own, blocks, places, rule)
            better = found[0] > best[0]
            return tuple(jnp.where(better, x, y) for x, y in zip(found, best, strict=True)), None

        start = jnp.full(blocks.shape[:2], -jnp.inf, words.dtype), jnp.zeros_like(blocks[..., 0])
        lost = jnp.where(jnp.all(jnp.isfinite(rows), axis=1), -1, after[:, 0] - 1)
        return *lax.scan(step, start, (tiles, places_of))[0], jnp.max(lost)

    top, first, wrong = _rows.apart(own, matrix.astype(words.dtype), after)
    most = jnp.max(top, axis=0, keepdims=True)
    latest = jnp.iinfo(first.dtype).max
    return jnp.min(jnp.where(top == most, first, latest), axis=0), jnp.max(wrong)


def _evenly(n: int, most: int) -> int:
    """Return the size of the fewest equal blocks that hold n, none larger than `most`."""
    return math.ceil(n / math.ceil(n / most))


def _finite(matrix: Any, rows: np.ndarray) -> np.ndarray:
    found = rows_of(matrix, rows)
    wrong = ~np.isfinite(found).all(axis=1)
    if wrong.any():
        _refuse(rows[wrong][0])
    return found


def _refuse(row: int) -> None:
    got = f"NaN or infinity in row {row}"
    _checks.fail("vectors", got, "finite numbers", "drop such words")


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
    own: Int[Array, " n"],
    codes: Int[Array, "blocks q 3"],
    places: Int[Array, "blocks q 3"],
    rule: Rule,
) -> tuple[Float[Array, "blocks q"], Int[Array, "blocks q"]]:
    """Find the highest score of rows of the tile for each question, and the place of that row.

    `own` are the places of rows, or -1 if they are not to be found; `codes` are the words of a
    question, and `places` theirs.
    """
    cosines = matmul(words, _unit_rows(tile)[0].T)
    place, latest = own[None, :], jnp.iinfo(own.dtype).max

    def block(_, some):
        codes, places = some
        a, b, c = (Asked(cosines[codes[:, j]], lengths[codes[:, j]]) for j in range(3))
        out = place < 0
        for j in range(3):
            out = out | (place == places[:, j : j + 1])
        scores = jnp.where(out, -jnp.inf, rule(a, b, c))
        top = jnp.max(scores, axis=1, keepdims=True)
        # Four times as fast as argmax, on a CPU.
        first = jnp.min(jnp.where(scores == top, place, latest), axis=1)
        return None, (top[:, 0], first)

    _, best = lax.scan(block, None, (codes, places))
    return best
