"""A corpus is read word by word, in pieces, and its vocabulary is what it holds most often."""

import codecs
import collections
import dataclasses
import glob
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta._files import is_packed, is_part, opened
from jaxmeta.progress import Progress, silent

__all__ = [
    "NO_WORD",
    "Corpus",
    "Range",
    "Vocabulary",
    "build_vocabulary",
    "given_vocabulary",
    "has_word",
    "intersection_vocabulary",
    "lower_words",
    "paths_of",
    "ranges_of",
    "read_range",
    "read_tokens",
    "refuse_empty",
    "union_vocabulary",
    "whitespace",
]

# Bytes of text read at a time, and the longest run without white space.
PIECE = 1 << 20
LONGEST = 1 << 20
PLACES = 1 << 20  # given at a time, about
# Names of encodings in which any byte of white space is white space.
CAN_BE_CUT = re.compile(r"utf-8|ascii|(iso8859-|cp125)\d+")

NO_WORD = "\0"
"""A place without a word: it cannot be in text, where a NUL is an error."""


def whitespace(text: str) -> list[str]:
    """Split text at white space, and leave words as they stand."""
    return text.split()


def lower_words(text: str) -> list[str]:
    """Find runs of letters and digits, with straight apostrophes inside words, in lower case.

    >>> lower_words("It’s SO_o good: 4.5 'stars'!")
    ["it's", 'so', 'o', 'good', '4', '5', 'stars']
    """
    return _WORD.findall(text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))


_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A corpus is text files, and a way to tell words apart in them; nothing is read until used."""

    path: str | Path | Sequence[str | Path]
    """Files (plain, .gz, .bz2, .zip), folders with all files below them, and glob patterns.

    In folders and by patterns, what a writer of jaxmeta has not finished is left out.
    """
    tokenise: Callable[[str], Iterable[str]] = whitespace
    """From a piece of text, cut at white space, to its words; none, if it is white space alone."""
    lines_are_documents: bool = False
    """Whether no window crosses the end of a line, and no piece given to `tokenise` does."""
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        try:
            " ".encode(self.encoding)  # codecs that are not of text raise here too
        except LookupError:
            do = "pass a name such as 'utf-8' or 'latin-1'"
            fail("encoding", repr(self.encoding), "one of text that Python knows", do)


class Vocabulary(NamedTuple):
    """A vocabulary lists words in the order of rows and columns of counts."""

    words: tuple[str, ...]
    counts: np.ndarray
    """How often each word occurs, int64."""
    tokens: int
    """Number of words in the running text, also of those outside the vocabulary."""


def build_vocabulary(
    corpus: Corpus, *, size: int | None = None, min_count: int = 1, progress: Progress | None = None
) -> Vocabulary:
    """Find the `size` most frequent words (all, if None), with ties in alphabetical order.

    `progress` is called with "vocabulary" and the fraction that is read.

    Cost: one pass; memory for every different word of the corpus.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "text").write_text("the cat and the dog")
    ...     print(build_vocabulary(Corpus(folder), size=2))
    Vocabulary(words=('the', 'and'), counts=array([2, 1]), tokens=5)
    """
    _checks.integer("min_count", min_count, least=1)
    found: collections.Counter[str] = collections.Counter()
    for *_, tokens in read_tokens(corpus, 0, "vocabulary", progress):
        found.update(tokens)
    frequent = {word: n for word, n in found.items() if n >= min_count}
    if not frequent:
        most = f"at most {max(found.values())}"
        fail("min_count", str(min_count), most, "no word occurs more often")
    of = f"the corpus, of words that occur at least {min_count} times,"
    return _most_frequent(frequent, frequent, size, found.total(), of)


def union_vocabulary(vocabularies: Sequence[Vocabulary], *, size: int | None = None) -> Vocabulary:
    """Join words of any vocabulary, by the sum of relative frequencies, then by the alphabet."""
    return _joined(vocabularies, set.union, size, "the union")


def intersection_vocabulary(
    vocabularies: Sequence[Vocabulary], *, size: int | None = None
) -> Vocabulary:
    """Keep words of all vocabularies, by the sum of relative frequencies, then by the alphabet."""
    return _joined(vocabularies, set.intersection, size, "the intersection")


def given_vocabulary(words: Sequence[str]) -> Vocabulary:
    """Take a given list in its order. Counts and the number of tokens are 0: nothing is read."""
    if isinstance(words, str) or not words:
        fail("words", repr(words), "a list of words", "pass at least one")
    for word, times in collections.Counter(words).items():
        if word.split() != [word]:
            fail("words", repr(word), "words without white space", "strip or drop it")
        if times > 1:
            do = "drop the duplicates, as list(dict.fromkeys(words)) does"
            fail("words", f"{word!r} {times} times", "every word once", do)
    return Vocabulary(tuple(words), np.zeros(len(words), np.int64), 0)


def _joined(
    vocabularies: Sequence[Vocabulary], join: Callable[..., set[str]], size: int | None, of: str
) -> Vocabulary:
    if isinstance(vocabularies, Vocabulary) or not vocabularies:
        got = "one" if vocabularies else "none"
        fail("vocabularies", got, "a list of them", "put a single one in a list")
    words = join(*(set(vocabulary.words) for vocabulary in vocabularies))
    if not words:
        do = "tokenise the corpora in the same way, or use union_vocabulary"
        fail("vocabularies", f"no word common to all {len(vocabularies)}", "at least one", do)
    # Over their common multiple relative frequencies are integers, so that ties are ties.
    multiple = math.lcm(*(max(v.tokens, 1) for v in vocabularies))
    counts, shares = dict.fromkeys(words, 0), dict.fromkeys(words, 0)
    for vocabulary in vocabularies:
        factor = multiple // max(vocabulary.tokens, 1)
        for word, n in zip(vocabulary.words, vocabulary.counts.tolist(), strict=True):
            if word in words:
                counts[word] += n
                shares[word] += n * factor
    return _most_frequent(counts, shares, size, sum(v.tokens for v in vocabularies), of)


def _most_frequent(
    counts: dict[str, int], shares: dict[str, int], size: int | None, tokens: int, of: str
) -> Vocabulary:
    if size is not None:
        _checks.integer("size", size, least=1, most=len(counts), of=of)
    words = sorted(counts, key=lambda word: (-shares[word], word))[:size]
    return Vocabulary(tuple(words), np.array([counts[w] for w in words], np.int64), tokens)


def read_tokens(
    corpus: Corpus, gap: int, stage: str, progress: Progress | None
) -> Iterator[tuple[str, bool, list[str]]]:
    """Give a text's name, whether it opens here, and its tokens, piece by piece and text by text.

    After each document with a word, and each text, come `gap` places without a word.
    """
    paths, say = paths_of(corpus.path), progress or silent
    total, done = sum(path.stat().st_size for path in paths), 0
    for path in paths:
        empty = True
        for name, opening, tokens, read in read_range(corpus, Range(path), gap):
            empty = empty and not has_word(tokens)
            yield name, opening, tokens
            say(stage, min((done + read) / max(total, 1), 0.99))
        if empty:
            refuse_empty(path)
        done += path.stat().st_size
    say(stage, 1.0)


def has_word(tokens: Sequence[str]) -> bool:
    """Whether a word is among places, which may be without one."""
    return any(token != NO_WORD for token in tokens)


def refuse_empty(path: Path) -> NoReturn:
    """Say that there is no word in a file."""
    fail(str(path), "no word", "text", "leave the file out, or tokenise it in another way")


class Range(NamedTuple):
    """A range is the bytes of a file from a place after white space to another; or all of it."""

    path: Path
    start: int = 0
    stop: int | None = None
    """None is the end of the file."""


def ranges_of(path: Path, size: int, encoding: str) -> list[Range]:
    """Cut a file into ranges of about `size` bytes, a multiple of PIECE, if it can be cut.

    Pieces of text in the ranges are those of the whole file.
    """
    places = [0]
    if not is_packed(path) and CAN_BE_CUT.fullmatch(codecs.lookup(encoding).name):
        with path.open("rb") as raw:
            for place in range(size, path.stat().st_size, size):
                if (found := _after_space(raw, places[-1], place, encoding)) > places[-1]:
                    places.append(found)
    stops = [*places[1:], None]
    return [Range(path, start, stop) for start, stop in zip(places, stops, strict=True)]


def _after_space(raw: io.BufferedIOBase, least: int, most: int, encoding: str) -> int:
    """Find where the last white space between two places ends, or give the first of them."""
    start, back = most, 1 << 10
    while start > least:
        start, back = max(least, most - back), 4 * back
        raw.seek(start)
        # What is cut or no text stays as long as it is, and is no white space.
        text = raw.read(most - start).decode(encoding, "surrogateescape")
        rest = "" if text[-1].isspace() else text.rsplit(maxsplit=1)[-1]
        if len(rest) < len(text):
            return most - len(rest.encode(encoding, "surrogateescape"))
    return least


def read_range(
    corpus: Corpus, place: Range, gap: int
) -> Iterator[tuple[str, bool, list[str], int]]:
    """Give what `read_tokens` does of a part of a file, and how much of the file is read."""
    with place.path.open("rb") as raw:
        raw.seek(place.start)
        for name, file in opened(place.path, raw):
            opening = place.start == 0
            pieces = _pieces(file, place, place.path.parent / name, corpus.encoding)
            for tokens in _tokens(corpus, pieces, gap, opening):
                yield name, opening, tokens, raw.tell()
                opening = False
            if place.stop is None:
                yield name, opening, [NO_WORD] * gap, raw.tell()


def _tokens(corpus: Corpus, pieces: Iterator[str], gap: int, opening: bool) -> Iterator[list[str]]:
    # Before a range there may be words of its first line; if there are none, the line ends twice.
    ended = opening
    for piece in pieces:
        # The next piece may go on with the last line.
        lines = piece.split("\n") if corpus.lines_are_documents else [piece]
        tokens: list[str] = []
        for line in lines[:-1]:
            tokens += (words := list(corpus.tokenise(line)))
            if words or not ended:
                tokens += [NO_WORD] * gap
            ended = True
            if len(tokens) > PLACES:
                yield tokens
                tokens = []
        tokens += (words := list(corpus.tokenise(lines[-1])))
        ended = ended and not words
        yield tokens


def paths_of(path: str | Path | Sequence[str | Path]) -> list[Path]:
    """Find the files that are meant; in folders, those that are not whole yet are not."""
    if isinstance(path, str | Path):
        place = Path(path)
        if place.is_file():
            return [place]
        found = place.rglob("*") if place.is_dir() else glob.glob(str(path), recursive=True)
        files = sorted(p for p in map(Path, found) if p.is_file() and not is_part(p))
    else:
        files = [file for one in path for file in paths_of(one)]
    if not files:
        got = f"{str(path)!r}, where there is no file"
        expected = "a file, a folder with files, or a pattern that matches some"
        fail("path", got, expected, "check the spelling", FileNotFoundError)
    return files


def _pieces(file: io.BufferedIOBase, place: Range, path: Path, encoding: str) -> Iterator[str]:
    """Cut text at white space."""
    # A mark of the byte order at the start is no part of the first word.
    exact = codecs.lookup(encoding).name
    marked = exact == "utf-8" and place.start == 0
    decoder = codecs.getincrementaldecoder("utf-8-sig" if marked else exact)()
    block, rest, read = b"more", "", place.start
    while block:
        # Blocks end at multiples, wherever a range starts.
        most = PIECE + -read % PIECE
        block = file.read(most if place.stop is None else min(most, place.stop - read))
        read += len(block)
        try:
            text = rest + decoder.decode(block, final=not block)
        except UnicodeError as error:
            got = str(error)  # UTF-16 without a mark of the byte order names no place
            if isinstance(error, UnicodeDecodeError):
                at = read - len(error.object) + error.start
                got = f"byte {error.object[error.start]:#04x} at offset {at}"
            do = "pass encoding= with the one it is in, such as 'latin-1'"
            fail(str(path), got, f"text in {encoding}", do)
        if "\0" in text:
            do = "leave the file out, or pass encoding='utf-16' if it is in that"
            fail(str(path), f"a NUL among its first {read} bytes", "text and not binary data", do)
        rest = text.rsplit(maxsplit=1)[-1] if block and text and not text[-1].isspace() else ""
        if len(rest) > LONGEST:
            got = f"{len(rest)} characters without white space before offset {read}"
            do = "leave the file out if it is binary data, or put white space between its words"
            fail(str(path), got, f"words of at most {LONGEST}", do)
        if text := text[: len(text) - len(rest)]:
            yield text
