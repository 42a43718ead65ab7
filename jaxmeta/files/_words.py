"""Words are decoded, kept once each, and looked at before they are written."""

import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta._checks import fail
from jaxmeta.files import _blocks

__all__ = ["DuplicateWords", "Kept", "check_words"]


class DuplicateWords(UserWarning):
    """A file names words more than once: the first row of each is kept."""


class Kept:
    """Words are kept once each, and of those that are wanted, if not all are."""

    def __init__(self, wanted: frozenset[str] | None, errors: str) -> None:
        self.words: dict[str, None] = {}
        self.most = sys.maxsize if wanted is None else len(wanted)
        self.repeated = 0
        self._wanted, self._errors = wanted, errors

    def choose(self, block: _blocks.Block) -> np.ndarray:
        """Keep words of a block; return their places."""
        words, kept, before = _decoded(block, self._errors), self.words, len(self.words)
        if self._wanted is None:
            kept.update(dict.fromkeys(words))
            if len(kept) == before + len(words):
                return np.arange(len(words))
            while len(kept) > before:  # some come again: one by one
                kept.popitem()
        chosen = []
        for place, word in enumerate(words):
            if word in kept:
                self.repeated += 1
            elif self._wanted is None or word in self._wanted:
                kept[word] = None
                chosen.append(place)
                if len(kept) == self.most:
                    break
        return np.array(chosen, int)

    def warn(self, path: Path, stacklevel: int) -> None:
        """Warn if words came again; as many functions as `stacklevel` are not to blame."""
        if self.repeated:
            rest = "rows repeat a word and were dropped; the first was kept"
            message = f"{path}: {self.repeated} {rest}."
            warnings.warn(message, DuplicateWords, stacklevel=stacklevel + 1)


def _decoded(block: _blocks.Block, errors: str) -> list[str]:
    """Decode the words of a block, none of which may be empty."""
    try:
        words = b"\n".join(block.words).decode().split("\n")  # type: ignore[arg-type]
    except (TypeError, UnicodeDecodeError):
        words = []
    try:
        if len(words) != len(block.words):  # they are strings, not UTF-8, or have a new line
            words = [w if isinstance(w, str) else w.decode("utf-8", errors) for w in block.words]
    except UnicodeDecodeError as error:
        where = block.where(list(block.words).index(error.object))
        byte = f"byte {error.object[error.start]:#04x} at place {error.start}"
        do = "pass errors='backslashreplace' to keep it, or 'replace'"
        fail(where, f"{byte} of word {error.object[:40]!r}", "UTF-8", do)
    if "" in words:
        where = block.where(words.index(""))
        fail(where, "an empty word", "a word in every row", "remove that row")
    return words


def check_words(words: Sequence[str], unfit: Callable[[str], Any], meaning: str) -> None:
    """Raise unless every word can be written, and read again as it is."""
    text = "".join(words)
    some = words if not all(words) or re.search(r"[\0\t\n\r ]", text) else ()  # others always fit
    for i, word in enumerate(some):
        if not word or "\n" in word or unfit(word):
            expected = f"words in one line, not empty, {meaning}"
            fail(f"words[{i}]", repr(word), expected, "drop or mend it, or use another format")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        i = next(i for i, word in enumerate(words) if error.object[error.start] in word)
        fail(f"words[{i}]", ascii(words[i]), "words that UTF-8 can hold", "drop or mend it")
