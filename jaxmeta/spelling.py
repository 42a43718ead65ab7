"""Word forms, which are found by spelling, tell without a label whether a source knows words.

"walk" and "walks" are related, and many words differ so; "plan" and "planet" are spelled as much
alike, by chance. A source in which the first stand out among all pairs knows which words are
related, and one in which both do sees how they are spelled.
"""

import collections
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxmeta import _checks
from jaxmeta._types import Scalar
from jaxmeta.linalg import matmul, row_norms
from jaxmeta.prepare import unit_rows

__all__ = ["Separation", "WordForms", "separation", "word_forms"]

_LEAST = 50  # pairs of either kind that it takes to measure by them
_STEM, _ENDING = 4, 3  # letters: at least, and at most


class WordForms(NamedTuple):
    """Pairs of rows, (pairs, 2), of which the second word is the first and a few more letters."""

    related: np.ndarray
    """By an ending that extends many words."""
    chance: np.ndarray
    """By an ending that extends few."""

    @property
    def enough(self) -> bool:
        """Whether there are enough of both to measure by."""
        return min(len(self.related), len(self.chance)) >= _LEAST


class Separation(NamedTuple):
    """How far pairs of words stand out among the cosines of a source, in standard deviations."""

    related: Scalar
    """Mean cosine of word forms, less that of all pairs."""
    chance: Scalar
    """The same of words that are spelled alike by chance."""

    @property
    def difference(self) -> Scalar:
        """What word forms have in common beyond their spelling."""
        return self.related - self.chance


def word_forms(words: Sequence[str], *, share: float = 0.01, rare: int = 3) -> WordForms:
    """Pairs of words of which one is the other, at least four letters, and up to three more.

    An ending that makes at least a `share` of all such pairs makes word forms; one that makes at
    most `rare` of them, chance. Words of lower-case letters alone are looked at. It takes a
    language that has endings, and a few thousand words. This is for the host. Cost: linear in the
    number of words.

    >>> words = ["walk", "talk", "plan", "walks", "talks", "plans", "planet"]
    >>> word_forms(words, rare=1).related.tolist()
    [[0, 3], [1, 4], [2, 5]]
    >>> word_forms(words, rare=1).chance.tolist()
    [[2, 6]]
    """
    _checks.integer("rare", rare, least=0)
    place = {w: i for i, w in enumerate(map(str, words)) if w.isalpha() and w == w.lower()}
    found = [
        (place[word[:-size]], i, word[-size:])
        for word, i in place.items()
        for size in range(1, _ENDING + 1)
        if len(word) - size >= _STEM and word[:-size] in place
    ]
    count = collections.Counter(ending for *_, ending in found)
    many = max(share * len(found), rare + 1)
    related = [(a, b) for a, b, ending in found if count[ending] >= many]
    chance = [(a, b) for a, b, ending in found if count[ending] <= rare]
    return WordForms(*(np.array(pairs, np.int32).reshape(-1, 2) for pairs in (related, chance)))


@_checks.checked()
def separation(source: Float[Array, "n k"], pairs: WordForms) -> Separation:
    r"""How far word forms, and words spelled alike by chance, stand out in cosines of a source.

    Means are above the mean cosine of all pairs of rows, in standard deviations over them:
    $\sqrt{\|U^\top U\|_F^2/n^2 - |\bar u|^4}$ for rows $u$ of length 1. No label is used. Rows of
    zeros are left out. NaN of either kind for fewer than 50 pairs, or if cosines do not vary. It is
    for words in a language that has endings. Cost: $O(nk^2)$.

    >>> pairs = WordForms(np.tile([[0, 1]], (50, 1)), np.tile([[0, 2]], (50, 1)))
    >>> found = separation(jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), pairs)
    >>> f"{found.related:.2f} {found.chance:.2f} {found.difference:.2f}"
    '0.89 -1.12 2.01'
    """
    _checks.array("source", source, 2)
    for name, rows in pairs._asdict().items():
        if jnp.ndim(rows) != 2 or rows.shape[1] != 2 or not jnp.issubdtype(rows.dtype, jnp.integer):
            got = f"{rows.dtype} of shape {jnp.shape(rows)}"
            _checks.fail(f"pairs.{name}", got, "integers of shape (pairs, 2)", "see word_forms")
    eps = jnp.finfo(source.dtype).eps
    # A NaN is no zero, and has to come through.
    here = row_norms(source) != 0
    n = jnp.maximum(jnp.sum(here, dtype=source.dtype), 1)
    units = unit_rows(source)
    centre = jnp.sum(units, axis=0, keepdims=True) / n
    # About the centre nothing large is left to cancel: a cosine less the mean of all cosines is
    # d_a.d_b + c.(d_a + d_b), and of this the mean square is |S|^2 + 2 c.Sc.
    d = jnp.where(here[:, None], units - centre, 0)
    s = matmul(d.T, d) / n
    variance = jnp.sum(s**2) + 2 * jnp.sum(matmul(centre, s) * centre)
    varies = ~(variance <= (64 * eps) ** 2)
    spread = jnp.sqrt(jnp.where(varies, variance, 1))
    along = matmul(d, centre.T)[:, 0]

    def mean(rows):
        a, b = rows.T
        known = here[a] & here[b]
        above = jnp.sum(d[a] * d[b], axis=1) + along[a] + along[b]
        count = jnp.sum(known, dtype=source.dtype)
        found = jnp.sum(jnp.where(known, above, 0)) / jnp.maximum(count, 1) / spread
        return jnp.where(varies & (count >= _LEAST), found, jnp.nan)

    return Separation(*map(mean, pairs))
