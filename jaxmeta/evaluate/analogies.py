r"""Analogies ask for the word that is to c as b is to a.

A question is answered by the word, of all but a, b and c, with the highest score. Scores are a
function of the cosines between the candidates and the words of the question, and of the lengths of
those:

| rule | score of candidate $d$ | |
|---|---|---|
| `three_cos_add` | $\cos(d, b) - \cos(d, a) + \cos(d, c)$ | `levy14`, and what gensim does |
| `paper_cos_add` | $\cos(d, b - a + c)$ | `bollegala22`, and the code that it uses |
| `three_cos_mul` | $\cos(d, b)\cos(d, c) / (\cos(d, a) + \epsilon)$ | `levy14` |

The first two are the same if all vectors have one length. Any function like them will do.

Questions share their words: Google's 19,544 have 905 between them. So cosines are computed once for
each word, and those of a question are rows of that table. It is made for some candidates at a time,
and only those are on the device: memory does not grow with the vocabulary.
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
    r"""$\cos(d, b - a + c)$ up to the length of $b - a + c$, which is the same for all $d$.

    Long vectors have more of a say than in `three_cos_add`. Reference: `bollegala22`.
    """
    return b.lengths * b.cosines - a.lengths * a.cosines + c.lengths * c.cosines


def three_cos_mul(a: Asked, b: Asked, c: Asked) -> Float[Array, "q n"]:
    r"""$\cos'(d, b)\cos'(d, c)/(\cos'(d, a) + .001)$ for $\cos' = (1 + \cos)/2$.

    No cosine can outweigh the others. Reference: `levy14`.
    """
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

    An answer is right if it is the fourth word. Of candidates with equal scores the first wins, in
    the order of `vectors`. Words are looked up as they stand, else in lower case. Questions with a
    word that is missing are left out, and `covered` counts the rest. A question whose fourth word
    is also one of the others cannot be answered, and is wrong.

    Parameters
    ----------
    vectors
        What `as_vectors` takes. Scores are computed in its dtype, but float16 in float32, and
        float64 too unless JAX is set to 64 bit.
    vocabulary
        Use these words alone, as candidates too. With `common_words` of several embeddings, all
        of them answer the same questions from the same candidates.
    method
        A rule for scores, see above. Each new one is compiled.
    progress
        Called with "analogies" and the fraction of the candidates that is done.

    Returns
    -------
    The score of all questions, as "Google"; if there are sections whose names start with "gram" and
    others, those of "Google: semantic" and "Google: syntactic"; and if there are several, that of
    each section, as "Google: currency". Those without a covered question are left out.

    Cost: $O(mnk + qn)$ for $q$ questions with $m$ words between them, and memory of $O(mk)$ on the
    device. References: `mikolov13`, `levy14`, `bollegala22`.

    >>> vectors = {"man": [1.0, 0.0], "king": [1.0, 2.0], "woman": [-1.0, 0.1]}
    >>> vectors |= {"queen": [-1.0, 2.0], "the": [0.1, 0.1]}
    >>> words = (("Man", "King", "woman", "queen"), ("man", "king", "boy", "prince"))
    >>> (total,) = analogy(vectors, Questions("toy", words, ("royal", "royal")))
    >>> print(f"{total.task}: {total.value} on {total.covered} of {total.total}")
    toy: 1.0 on 1 of 2
    """
    words, matrix = as_vectors(vectors)
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
    scores = [accuracy_score(right, task=questions.name, total=total)]
    sections = np.array(questions.sections)
    syntactic = np.char.startswith(sections, "gram")
    parts = {"semantic": ~syntactic, "syntactic": syntactic} if 0 < syntactic.sum() < total else {}
    names = dict.fromkeys(questions.sections)
    if len(names) > 1:
        parts |= {name: sections == name for name in names}
    for name, part in parts.items():
        if (part & covered).any():
            task = f"{questions.name}: {name}"
            scores.append(accuracy_score(right[part[covered]], task=task, total=int(part.sum())))
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
        local = places - np.int32(start)
        found = _best_of_tile(words, lengths, tile, len(some), blocks, local, rule)
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
    """Find the highest score of a candidate in the tile for each question, and who has it first.

    `words` are unit vectors, `codes` those of each question, `places` where they are in the tile,
    if they are; `count` candidates are in the tile.
    """
    units, _ = _unit_rows(tile)
    cosines = matmul(words, units.T)
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
