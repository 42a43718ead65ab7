"""Each kind of file of the data sets has a reader, and what it makes of the file has a type.

A reader takes the name of the data set, the texts of its files in the order of the registry, and
whether tokens of sentences are put in lower case.
"""

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxmeta import _checks

__all__ = [
    "READERS",
    "LabelledSentences",
    "Questions",
    "RatedWords",
    "SentencePairs",
    "TaggedText",
    "Text",
    "WordPairs",
    "read_text",
]


class WordPairs(NamedTuple):
    """Pairs of words have scores that say how similar people find them."""

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: np.ndarray


class RatedWords(NamedTuple):
    """Words have a rating each, such as how positive they are; a word may come several times."""

    name: str
    words: tuple[str, ...]
    scores: np.ndarray


class Questions(NamedTuple):
    """Questions are analogies: a is to b as c is to d."""

    name: str
    words: tuple[tuple[str, str, str, str], ...]
    sections: tuple[str, ...]


class LabelledSentences(NamedTuple):
    """Sentences, as tokens, have a class each."""

    name: str
    sentences: tuple[tuple[str, ...], ...]
    labels: np.ndarray  # integers from 0


class SentencePairs(NamedTuple):
    """Pairs of sentences, as tokens, have scores of people or NaN, and perhaps classes, from 0."""

    name: str
    first: tuple[tuple[str, ...], ...]
    second: tuple[tuple[str, ...], ...]
    scores: np.ndarray
    parts: tuple[str, ...]
    """The part of each pair: "train", "dev", "test", or the name of a subset."""
    labels: np.ndarray | None = None


class TaggedText(NamedTuple):
    """Tagged text consists of sentences of pairs of a token and its tag."""

    name: str
    train: tuple[tuple[tuple[str, str], ...], ...]
    test: tuple[tuple[tuple[str, str], ...], ...]


_AGAIN = "mend the line, or get the file again"


class Text(NamedTuple):
    """A text is the lines of a file."""

    path: Path
    lines: list[str]

    def numbered(self) -> Iterator[tuple[str, str]]:
        """Yield lines, each after the words that say where it is."""
        for number, line in enumerate(self.lines, 1):
            yield f"{self.path}, line {number}", line


def read_text(path: Path, content: bytes, encoding: str) -> Text:
    """Split the content of a file into lines."""
    try:
        # Other characters that end lines for str.splitlines are inside of some.
        lines = [line.removesuffix("\r") for line in content.decode(encoding).split("\n")]
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        byte, do = f"byte {error.object[error.start]:#04x}", "convert the file, or get it again"
        _checks.fail(f"{path}, line {number}", byte, "text in UTF-8", do)
    if not lines[-1]:
        lines.pop()
    if not lines:
        _checks.fail(str(path), "an empty file", "lines of text", "get it again")
    return Text(path, lines)


def _fields(
    where: str, line: str, columns: str, *, separator: str | None = None, more: int = 0
) -> list[str]:
    """Split a line into the columns that are named, and up to `more` others."""
    fields, least = line.split(separator), len(columns.split(", "))
    if not least <= len(fields) <= least + more:
        got = f"{len(fields)} column{'s' * (len(fields) != 1)}"
        others = f" and up to {more} more" if more else ""
        _checks.fail(where, got, f"{least} ({columns}){others}", _AGAIN)
    return fields


def _number(where: str, field: str) -> float:
    try:
        number = float(field)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        _checks.fail(where, repr(field), "a finite number as the score", _AGAIN)
    return number


def _tokens(text: str, lower: bool) -> tuple[str, ...]:
    return tuple((text.lower() if lower else text).split())


_TOKEN = re.compile(
    r"""(?:[a-z]\.){2,}       # U.S.
    | \w+?(?=n['\u2019]t\b)  # do, of don't
    | n['\u2019]t\b          # n't
    | (?<=\w)['\u2019]\w+    # 's
    | \w+(?:[-.,]\w+)*       # man, well-known, 1,650
    | [^\w\s]                # any other mark
    """,
    re.VERBOSE | re.IGNORECASE,
)


def _separated(text: str, lower: bool) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(text.lower() if lower else text))


def _read_word_pairs(name: str, texts: list[Text], lower: bool) -> WordPairs:  # noqa: ARG001
    rows = []
    for where, line in texts[0].numbered():
        a, b, score = _fields(where, line, "word, word, score")
        rows.append((a, b, _number(where, score)))
    first, second, scores = zip(*rows, strict=True)
    return WordPairs(name, first, second, np.array(scores))


def _read_questions(name: str, texts: list[Text], lower: bool) -> Questions:  # noqa: ARG001
    words, sections, section = [], [], name
    for where, line in texts[0].numbered():
        if line.startswith(":"):
            section = line[1:].strip()
        else:
            a, b, c, d = _fields(where, line, "a, b, c, d")
            words.append((a, b, c, d))
            sections.append(section)
    return Questions(name, tuple(words), tuple(sections))


def _read_polarity(name: str, texts: list[Text], lower: bool) -> LabelledSentences:
    sentences = tuple(_tokens(line, lower) for text in texts for line in text.lines)
    labels = [text.path.suffix == ".pos" for text in texts for _ in text.lines]
    return LabelledSentences(name, sentences, np.array(labels, np.int64))


_Rows: TypeAlias = Iterator[tuple[Any, ...]]


def _sentence_pairs(rows: Callable[[list[Text], bool], _Rows]) -> Callable[..., SentencePairs]:
    """Make a reader of a function that yields two sentences, score, part and perhaps class."""

    def read(name: str, texts: list[Text], lower: bool) -> SentencePairs:
        columns = tuple(zip(*rows(texts, lower), strict=True)) or ((),) * 4
        first, second, scores, parts, *labels = columns
        return SentencePairs(name, first, second, np.array(scores), parts, *map(np.array, labels))

    return read


_PARTS = ("train", "dev", "test")
_SICK_HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
_ENTAILMENT = {"NEUTRAL": 0, "ENTAILMENT": 1, "CONTRADICTION": 2}


@_sentence_pairs
def _read_sick(texts: list[Text], lower: bool) -> _Rows:
    for part, text in zip(_PARTS, texts, strict=True):
        lines = text.numbered()
        where, header = next(lines)
        if header != _SICK_HEADER:
            _checks.fail(where, repr(header), f"the header {_SICK_HEADER!r}", "get the file again")
        for where, line in lines:
            columns = "id, sentence, sentence, score, entailment"
            _, a, b, score, label = _fields(where, line, columns, separator="\t")
            if label not in _ENTAILMENT:
                _checks.fail(where, repr(label), f"one of {', '.join(_ENTAILMENT)}", _AGAIN)
            sides = _separated(a, lower), _separated(b, lower)
            yield *sides, _number(where, score), part, _ENTAILMENT[label]


@_sentence_pairs
def _read_snli(texts: list[Text], lower: bool) -> _Rows:
    """Pairs on which annotators did not agree, with the label "-", are left out, as usual."""
    for part, text in zip(_PARTS, texts, strict=True):
        lines = text.numbered()
        where, header = next(lines)
        names = header.split("\t")
        wanted = "gold_label", "sentence1", "sentence2"
        if not set(wanted) <= set(names):
            expected = f"a header with {', '.join(wanted)}"
            _checks.fail(where, repr(header), expected, "get the file again")
        places = [names.index(name) for name in wanted]
        for where, line in lines:
            fields = line.split("\t")
            if len(fields) <= max(places):
                _checks.fail(where, f"{len(fields)} columns", f"{len(names)}", _AGAIN)
            label, a, b = (fields[place] for place in places)
            if label == "-":
                continue
            if label.upper() not in _ENTAILMENT:
                known = ", ".join(_ENTAILMENT).lower()
                _checks.fail(where, repr(label), f"one of {known}", _AGAIN)
            sides = _separated(a, lower), _separated(b, lower)
            yield *sides, math.nan, part, _ENTAILMENT[label.upper()]


@_sentence_pairs
def _read_sts(texts: list[Text], lower: bool) -> _Rows:
    for gold, text in zip(texts[::2], texts[1::2], strict=True):
        if len(gold.lines) != len(text.lines):
            got, expected = f"{len(gold.lines)} lines", f"{len(text.lines)}, as in {text.path.name}"
            _checks.fail(str(gold.path), got, expected, "get both files again")
        part = text.path.name.removeprefix("STS.input.").removesuffix(".txt")
        for (scored, score), (where, line) in zip(gold.numbered(), text.numbered(), strict=True):
            a, b = _fields(where, line, "sentence, sentence", separator="\t")
            if score.strip():
                yield _tokens(a, lower), _tokens(b, lower), _number(scored, score), part


@_sentence_pairs
def _read_sts_benchmark(texts: list[Text], lower: bool) -> _Rows:
    columns = "genre, file, year, id, score, sentence, sentence"
    for part, text in zip(_PARTS, texts, strict=True):
        for where, line in text.numbered():
            score, a, b = _fields(where, line, columns, separator="\t", more=2)[4:7]
            yield _separated(a, lower), _separated(b, lower), _number(where, score), part


def _read_tagged(name: str, texts: list[Text], lower: bool) -> TaggedText:
    def sentences(text: Text) -> tuple[tuple[tuple[str, str], ...], ...]:
        found: list[list[tuple[str, str]]] = [[]]
        for where, line in text.numbered():
            if not line.strip():
                found.append([])
            elif not line.startswith("-DOCSTART-"):
                word, tag, *_ = _fields(where, line, "word, tag", more=2)
                found[-1].append((word.lower() if lower else word, tag))
        return tuple(tuple(sentence) for sentence in found if sentence)

    return TaggedText(name, *map(sentences, texts))


def _read_sentiwords(name: str, texts: list[Text], lower: bool) -> RatedWords:
    """Lines are a lemma, # and its part of speech, and a score; those with # first are comments."""
    rows = []
    for where, line in texts[0].numbered():
        if line.startswith("#"):
            continue
        entry, score = _fields(where, line, "lemma#tag, score")
        lemma, _, tag = entry.rpartition("#")
        if not lemma:
            _checks.fail(where, repr(tag), "a lemma, # and its part of speech", _AGAIN)
        rows.append((lemma.lower() if lower else lemma, _number(where, score)))
    words, scores = zip(*rows, strict=True) if rows else ((), ())
    return RatedWords(name, words, np.array(scores))


READERS: dict[str, Callable[..., Any]] = {
    "word pairs": _read_word_pairs,
    "questions": _read_questions,
    "polarity": _read_polarity,
    "SICK": _read_sick,
    "SNLI": _read_snli,
    "SentiWords": _read_sentiwords,
    "STS": _read_sts,
    "STS-B": _read_sts_benchmark,
    "tags": _read_tagged,
}
"""What files of a kind are read by, under the name that the registry has for it."""
