"""Vectors of words are read from files, and written, in six formats, which names tell.

Text has a word and its numbers on each line, below a line of rows and columns (word2vec: `.txt`,
`.vec`) or not (`.glove`); in `.bin` numbers are float32. `.npz` holds arrays `words` and `vectors`;
`.npy` and `.safetensors` hold a matrix, with the words one on a line in `x.words.txt` or in the
metadata. Text and `.bin` may be packed: `.gz`, `.bz2`, or `.zip` with one file. Words of text may
have spaces inside, but not end in a space and a number. What is written reads back exactly.
"""

import codecs
import collections
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta._files import write_whole
from jaxmeta.files import _binary, _blocks, _matrices, _text
from jaxmeta.progress import Progress, silent

__all__ = [
    "DuplicateWords",
    "Vectors",
    "as_vectors",
    "format_of",
    "read_vectors",
    "to_gensim",
    "write_rows",
    "write_vectors",
]


class _Format(NamedTuple):
    suffixes: tuple[str, ...]
    read: Callable[[_blocks.Asked], _blocks.Blocks]
    write: Callable[[Any, _blocks.Given], None]
    unfit: str  # a pattern of words that it cannot hold
    fit: str  # what other words are
    packed: bool = False  # whether the file may be
    listed: bool = False  # whether words may be in a list beside it
    dtype: Any = None  # what numbers become unless something else is asked for


_TEXT = _text.UNFIT, "not ending in white space and a number", True, False, np.float32
_LIST = r"\n|\r\Z", "not ending in a carriage return", False, True
_FORMATS = {
    "word2vec": _Format((".txt", ".vec"), _text.read, _text.write, *_TEXT),
    "glove": _Format((".glove",), _text.read, partial(_text.write, header=False), *_TEXT),
    "bin": _Format((".bin",), _binary.read, _binary.write, r"[ \n]", "without spaces", True),
    "npz": _Format((".npz",), _matrices.read_npz, _matrices.write_npz, r"[\n\0]", "without NUL"),
    "npy": _Format((".npy",), _matrices.read_npy, _matrices.write_npy, *_LIST),
    "safetensors": _Format(
        (".safetensors",), _matrices.read_tensors, _matrices.write_tensors, *_LIST
    ),
}
_PACKED = (".gz", ".bz2", ".zip")


class Vectors(NamedTuple):
    """Words, and a matrix with a row for each."""

    words: tuple[str, ...]
    matrix: Float[np.ndarray, "n k"]


class DuplicateWords(UserWarning):
    """A file names words more than once: the first row of each is kept."""


def read_vectors(
    path: str | Path,
    *,
    format: str | None = None,
    limit: int | None = None,
    vocabulary: Collection[str] | None = None,
    words: str | Path | Sequence[str] | None = None,
    dtype: Any = None,
    errors: str = "strict",
    progress: Progress | None = None,
) -> Vectors:
    r"""Read the words and vectors of a file, in its order.

    `format` is one of glove, word2vec, bin, npz, npy and safetensors; None goes by the name, and
    then text may have a header or not. Of the first `limit` rows those of `vocabulary` are kept;
    reading ends when all are found. `words` is for .npy and .safetensors: the words, or a file with
    one on each line. `dtype` is float16, float32 or float64; None is that of the file, and float32
    for text. `errors` is for words that are not UTF-8, as in `bytes.decode`: "backslashreplace"
    keeps different words different. `progress` is called with "vectors" and the fraction read.
    Words that come again are dropped, with a `DuplicateWords` warning. Numbers that are not finite
    in `dtype` are refused.

    Cost: one pass; memory for what is kept, a quarter more while reading.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "vectors.txt"
    ...     _ = file.write_text("the 0.5 -1.25\n. . . 3 1e-3\n")
    ...     print(read_vectors(file).words)
    ('the', '. . .')
    """
    path = Path(path)
    kind = _FORMATS[format_of(path, format)]
    if limit is not None:
        _checks.integer("limit", limit, least=1)
    if isinstance(vocabulary, str) or (vocabulary is not None and not vocabulary):
        fail("vocabulary", repr(vocabulary), "a collection of words", "pass at least one")
    if words is not None and not kind.listed:
        fail("words", f"some for {path}", "None", "this format has words of its own")
    try:
        codecs.lookup_error(errors)
    except LookupError:
        fail("errors", repr(errors), "'strict', 'replace' or the like", "see bytes.decode")
    dtype = kind.dtype if dtype is None else dtype
    target = None if dtype is None else _blocks.float_dtype("dtype", dtype)
    asked = _blocks.Asked(path, format, sys.maxsize if limit is None else limit, words, target)
    wanted = None if vocabulary is None else frozenset(vocabulary)
    kept = _Kept(wanted, errors)
    with closing(kind.read(asked)) as blocks:
        matrix = _collect(blocks, asked, kept, progress or silent)
    if not kept.words:
        got = f"{len(wanted or ())} words of which none is in {path}"
        within = "" if limit is None else f" or raise limit, which is {limit}"
        fail("vocabulary", got, "at least one", f"check case and spelling{within}")
    if kept.repeated:
        message = f"{path}: {kept.repeated} rows repeat a word and were dropped; the first was kept"
        warnings.warn(f"{message}.", DuplicateWords, stacklevel=2)
    return Vectors(tuple(kept.words), matrix)


def format_of(path: str | Path, format: str | None = None) -> str:
    """Name the format that is given, or that the name of a file tells."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in _PACKED else ""
    if format is None:
        kinds = {suffix: name for name, kind in _FORMATS.items() for suffix in kind.suffixes}
        format = kinds.get("".join(suffixes[-1:]))
        got, expected = f"a name ending in {suffixes[-1:] or ['nothing']}", ", ".join(kinds)
    else:
        got, expected = f"format {format!r}", ", ".join(_FORMATS)
    if format not in _FORMATS:
        fail(str(path), got, f"one of {expected}", f"pass format=, one of {', '.join(_FORMATS)}")
    if packed and not _FORMATS[format].packed:
        fail(str(path), packed, f"{format} as it is", "packing is for text and .bin: unpack it")
    return format


def _collect(
    blocks: _blocks.Blocks, asked: _blocks.Asked, kept: "_Kept", progress: Progress
) -> np.ndarray:
    """Collect the rows of what is kept of all blocks."""
    matrix, words = np.empty((0, 0)), kept.words
    for block in blocks:
        before, chosen = len(words), kept.choose(block)
        if chosen.size:
            where = lambda i, block=block, chosen=chosen: block.where(chosen[i])  # noqa: E731
            rows = _blocks.cast(block.rows(chosen), asked.dtype, where)
            if not matrix.size:
                # Room for all, if the rest is like this. What is not written to takes no memory.
                room = min(asked.limit, kept.most, int(len(words) / max(block.done, 1e-6)) + 1)
                matrix = np.empty((room, rows.shape[1]), rows.dtype)
            if len(words) > len(matrix):
                room = max(len(words), len(matrix) * 5 // 4)
                matrix.resize((room, rows.shape[1]), refcheck=False)
            matrix[before : len(words)] = rows
        progress("vectors", min(block.done, 0.99))
        if len(words) == kept.most:
            break
    progress("vectors", 1.0)
    matrix.resize((len(words), *matrix.shape[1:]), refcheck=False)
    return matrix


class _Kept:
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
        fail(where, f"{byte} of word {error.object!r}", "UTF-8", do)
    if "" in words:
        where = block.where(words.index(""))
        fail(where, "an empty word", "a word in every row", "remove that row")
    return words


def write_vectors(
    path: str | Path,
    vectors: Any,
    *,
    format: str | None = None,
    words: str | Path | None = None,
    dtype: Any = None,
    progress: Progress | None = None,
) -> None:
    """Write what `as_vectors` takes, whole or not at all.

    `format` is as in `read_vectors`. `words` is for .npy and .safetensors: where to write the
    words, one on each line. Numbers are cast to `dtype` first; a .bin file refuses float64.
    `progress` is called with "vectors" and the fraction that is written.
    """
    own, matrix = as_vectors(vectors)
    dtype, take = matrix.dtype if dtype is None else dtype, lambda i, j: matrix[i:j]
    write_rows(path, own, matrix.shape[1], take, dtype, format, words, progress)


def write_rows(
    path: str | Path,
    words: Sequence[str],
    columns: int,
    take: Callable[[int, int], np.ndarray],
    dtype: Any,
    format: str | None = None,
    listed: str | Path | None = None,
    progress: Progress | None = None,
) -> None:
    """Write words and what `take(i, j)` returns for rows i to j, block by block."""
    path, name, dtype = Path(path), format_of(path, format), _blocks.float_dtype("dtype", dtype)
    kind, shown = _FORMATS[name], progress or silent
    if listed is not None and not kind.listed:
        fail("words", f"a file for {path}", "None", "this format has words of its own")
    if name == "bin" and dtype == np.float64:
        fail("dtype", "float64", "float32 in .bin files", "pass dtype=np.float32 to round")
    _check_words(words, kind.unfit, kind.fit)
    step = max(1, _blocks.BLOCK // (columns * dtype.itemsize))

    def blocks() -> Iterator[tuple[Sequence[str], np.ndarray]]:
        for i in range(0, len(words), step):
            shown("vectors", min(i / len(words), 0.99))
            rows = take(i, min(i + step, len(words)))
            where = lambda place, i=i: f"vectors: row {i + place}, from 0"  # noqa: E731
            yield words[i : i + step], _blocks.cast(rows, dtype, where)

    with ExitStack() as stack:
        if name == "npy" and listed is None:
            listed = path.with_suffix(".words.txt")
        if listed is not None:
            place = stack.enter_context(write_whole(listed))
            place.write_bytes("".join(f"{word}\n" for word in words).encode())
        file = stack.enter_context(_blocks.packed(path, stack.enter_context(write_whole(path))))
        held = words if listed is None else None
        kind.write(file, _blocks.Given(held, (len(words), columns), dtype, blocks()))
    shown("vectors", 1.0)


def _check_words(words: Sequence[str], pattern: str, meaning: str) -> None:
    """Raise unless every word can be written, and read again as it is."""
    search, text = re.compile(pattern, re.ASCII).search, "".join(words)
    some = words if not all(words) or re.search(r"[\0\t\n\r ]", text) else ()  # others always fit
    for i, word in enumerate(some):
        if not word or "\n" in word or search(word):
            expected = f"words in one line, not empty, {meaning}"
            fail(f"words[{i}]", repr(word), expected, "drop or mend it, or use another format")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        i = next(i for i, word in enumerate(words) if error.object[error.start] in word)
        fail(f"words[{i}]", ascii(words[i]), "words that UTF-8 can hold", "drop or mend it")


def as_vectors(source: Any) -> Vectors:
    """Take vectors from what other libraries hold.

    `source` is Vectors or a pair of words and a matrix; a pair of a dict from words to rows and a
    matrix, as `tokenizer.get_vocab()` and the input table of a transformer; a dict from words to
    vectors; gensim's KeyedVectors or a model with `wv`; or model2vec's StaticModel.

    >>> as_vectors({"a": [0.0, 1.0], "b": [0.5, 0.25]})
    Vectors(words=('a', 'b'), matrix=array([[0.  , 1.  ], [0.5 , 0.25]]))
    """
    if hasattr(source, "wv"):
        source = source.wv
    if hasattr(source, "index_to_key") and hasattr(source, "vectors"):
        words, matrix = source.index_to_key, source.vectors
    elif hasattr(source, "embedding") and hasattr(source, "tokens"):
        words, matrix = source.tokens, np.asarray(source.embedding)
        if getattr(source, "token_mapping", None) is not None:
            matrix = matrix[np.asarray(source.token_mapping)]
        if getattr(source, "weights", None) is not None:
            matrix = matrix * np.asarray(source.weights, matrix.dtype)[:, None]
    elif isinstance(source, Mapping):
        words, matrix = source.keys(), list(map(np.asarray, source.values()))
        lengths = sorted({np.size(vector) for vector in matrix})
        if len(lengths) > 1:
            fail("source", f"vectors of lengths {lengths}", "one length", "drop the others")
    elif isinstance(source, tuple) and len(source) == 2:
        words, matrix = source
    else:
        got, expected = f"a {type(source).__name__}", "vectors of a kind that is known"
        fail("source", got, expected, "pass a pair of words and a matrix", TypeError)
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape:
        fail("matrix", f"shape {matrix.shape}", "a row for each word", "reshape it")
    _blocks.float_dtype("matrix", matrix.dtype)
    if isinstance(words, Mapping):
        words, rows = zip(*sorted(words.items(), key=lambda item: item[1]), strict=True)
        if rows[0] < 0 or rows[-1] >= len(matrix):
            got = f"rows {rows[0]} to {rows[-1]}"
            fail("words", got, f"0 to {len(matrix) - 1}", "pass the matrix that goes with them")
        matrix = matrix[np.array(rows)]
    words = tuple(words)
    if len(words) != len(matrix):
        got = f"{len(words)} words and {len(matrix)} rows"
        fail("words and matrix", got, "one word for each row", "pass those that go together")
    for word in words:
        if not isinstance(word, str):
            fail("words", repr(word), "strings", "decode or convert them")
    if len(set(words)) < len(words):
        (word, times), *_ = collections.Counter(words).most_common(1)
        fail("words", f"{word!r} {times} times", "every word once", "keep one row of each")
    return Vectors(words, matrix)


def to_gensim(vectors: Any) -> Any:
    """Make gensim's KeyedVectors of what `as_vectors` takes, in the same dtype."""
    package = _checks.package("gensim.models", "gensim")
    words, matrix = as_vectors(vectors)
    found = package.KeyedVectors(matrix.shape[1], dtype=matrix.dtype)
    found.add_vectors(list(words), matrix)
    return found
