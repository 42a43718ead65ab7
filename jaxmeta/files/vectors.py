"""Vectors of words are read from files, and written, in six formats, which names tell.

Text has a word and its numbers on each line, below a line of rows and columns (word2vec: `.txt`,
`.vec`) or not (`.glove`); in `.bin` numbers are float32. `.npz` holds arrays `words` and `vectors`;
`.npy` and `.safetensors` hold a matrix, with the words one on a line in `x.words.txt`, in the
metadata, or in the `tokenizer.json` beside the safetensors of a transformer. Text and `.bin` may be
packed: `.gz`, `.bz2`, or `.zip` with one file; what would unpack to more than ten times its size
and 64 MB is refused, and has to be unpacked first. Words of text may have spaces inside, but not
end in a space and a number. What is written reads back exactly.
"""

import codecs
import collections
import dataclasses
import functools
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta._files import write_whole
from jaxmeta.files import _blocks, _lists
from jaxmeta.files._formats import FORMATS, format_of
from jaxmeta.files._words import DuplicateWords, Kept, check_words
from jaxmeta.progress import Progress, silent

__all__ = [
    "DuplicateWords",
    "Vectors",
    "as_vectors",
    "cosines",
    "format_of",
    "read_vectors",
    "to_gensim",
    "write_rows",
    "write_vectors",
]


SHOWN = 3  # words, at a prompt


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Vectors:
    """Words, and a matrix with a row for each.

    `words, matrix = vectors` takes the two apart; `len`, `in` and `[word]` are about the words.

    >>> vectors = Vectors(("cat", "dog", "bus"), np.array([[1.0, 0.2], [2.0, 0.0], [0.0, 1.0]]))
    >>> vectors
    Vectors(3 words x 2 dimensions, float64: 'cat', 'dog', 'bus')
    >>> len(vectors), "cat" in vectors, vectors["dog"].tolist()
    (3, True, [2.0, 0.0])
    >>> [(word, round(cosine, 2)) for word, cosine in vectors.most_similar("dog")]
    [('cat', 0.98), ('bus', 0.0)]
    """

    words: tuple[str, ...]
    matrix: np.ndarray
    """Floats, of shape (n, k)."""

    def __iter__(self) -> Iterator[Any]:
        """The words, and the matrix."""
        return iter((self.words, self.matrix))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def __getitem__(self, word: str) -> Float[np.ndarray, " k"]:
        """The row of a word. The first one takes a dictionary of all words."""
        row = self._index.get(word)
        if row is None:
            do = "check case and spelling; rows by number are those of .matrix"
            fail("word", repr(word), f"one of the {len(self):,} words", do, KeyError)
        return self.matrix[row]

    def __repr__(self) -> str:
        n, shown = len(self.words), ", ".join(map(repr, self.words[:SHOWN]))
        more = ", ..." if n > SHOWN else ""
        size = " x ".join(map(str, self.matrix.shape[1:]))
        return f"Vectors({n:,} words x {size} dimensions, {self.matrix.dtype}: {shown}{more})"

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        return dict(zip(self.words, range(len(self.words)), strict=True))

    def most_similar(self, word: str, count: int = 10) -> list[tuple[str, float]]:
        """The `count` words with the largest cosines to a word, which is left out. Cost: O(nk)."""
        _checks.integer("count", count, least=1)
        own, step = self[word], max(1, _blocks.BLOCK // (8 * len(self[word])))
        blocks = (self.matrix[i : i + step] for i in range(0, len(self), step))
        found = np.concatenate([cosines(x, np.broadcast_to(own, x.shape)) for x in blocks])
        found[self._index[word]] = -np.inf
        order = np.argsort(-found, kind="stable")[: min(count, len(self) - 1)]
        return [(self.words[i], float(found[i])) for i in order]


def read_vectors(
    path: str | Path,
    *,
    format: str | None = None,
    limit: int | None = None,
    vocabulary: Collection[str] | None = None,
    words: str | Path | Sequence[str] | None = None,
    tensor: str | None = None,
    dtype: Any = None,
    errors: str = "strict",
    progress: Progress | None = None,
) -> Vectors:
    r"""Read the words and vectors of a file, in its order.

    `format` is one of glove, word2vec, bin, npz, npy and safetensors; None goes by the name, and
    then text may have a header or not. Of the first `limit` rows those of `vocabulary` are kept;
    reading ends when all are found. `words` is for .npy and .safetensors: the words, a file with
    one on each line, or a `tokenizer.json`, which says of which token each row is; rows of none, as
    at the end of a table that was made larger, are left out. `tensor` names the matrix that is
    wanted of several in a .safetensors file. `dtype` is float16, float32 or float64; None is that
    of the file, and float32 for text and bfloat16. `errors` is for words that are not UTF-8, as in
    `bytes.decode`: "backslashreplace" keeps different words different. `progress` is called with
    "vectors" and the fraction read. Words that come again are dropped, with a `DuplicateWords`
    warning. Numbers that are not finite in `dtype` are refused.

    Cost: one pass; memory for what is kept, a quarter more while reading.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "vectors.txt"
    ...     _ = file.write_text("the 0.5 -1.25\n. . . 3 1e-3\n")
    ...     print(read_vectors(file).words)
    ('the', '. . .')
    """
    path = Path(path)
    kind = FORMATS[format_of(path, format)]
    if limit is not None:
        _checks.integer("limit", limit, least=1)
    if isinstance(vocabulary, str) or (vocabulary is not None and not vocabulary):
        fail("vocabulary", repr(vocabulary), "a collection of words", "pass at least one")
    if words is not None and not kind.listed:
        fail("words", f"some for {path}", "None", "this format has words of its own")
    if tensor is not None and kind.read is not FORMATS["safetensors"].read:
        fail("tensor", f"{tensor!r} for {path}", "None", "this format has one matrix")
    try:
        codecs.lookup_error(errors)
    except LookupError:
        fail("errors", repr(errors), "'strict', 'replace' or the like", "see bytes.decode")
    dtype = kind.dtype if dtype is None else dtype
    target = None if dtype is None else _blocks.float_dtype("dtype", dtype)
    limited = sys.maxsize if limit is None else limit
    asked = _blocks.Asked(path, format, limited, words, target, tensor)
    wanted = None if vocabulary is None else frozenset(vocabulary)
    kept = Kept(wanted, errors)
    with closing(kind.read(asked)) as blocks:
        matrix = _collect(blocks, asked, kept, progress or silent)
    if not kept.words:
        got = f"{len(wanted or ())} words of which none is in {path}"
        within = "" if limit is None else f" or raise limit, which is {limit}"
        fail("vocabulary", got, "at least one", f"check case and spelling{within}")
    kept.warn(path, 2)
    return Vectors(tuple(kept.words), matrix)


def _collect(
    blocks: _blocks.Blocks, asked: _blocks.Asked, kept: Kept, progress: Progress
) -> np.ndarray:
    """Collect the rows of what is kept of all blocks."""
    matrix, words = np.empty((0, 0)), kept.words
    for block in blocks:
        before, chosen = len(words), kept.choose(block)
        if chosen.size:
            where = lambda i, block=block, chosen=chosen: block.where(int(chosen[i]))  # noqa: E731
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
    words, one on each line; the matrix then has the digest of that list, and is read with no other.
    Numbers are cast to `dtype` first; a .bin file refuses float64. Words with spaces are written as
    text with a warning, as other readers split lines at spaces.
    `progress` is called with "vectors" and the fraction that is written.
    """
    _check_path(path)
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
    many: int | None = None,
) -> None:
    """Write words and what `take(i, j)` returns for rows i to j, at most `many`, block by block."""
    path, name, dtype = Path(path), format_of(path, format), _blocks.float_dtype("dtype", dtype)
    kind, shown = FORMATS[name], progress or silent
    if listed is not None and not kind.listed:
        fail("words", f"a file for {path}", "None", "this format has words of its own")
    if name == "bin" and dtype == np.float64:
        fail("dtype", "float64", "float32 in .bin files", "pass dtype=np.float32 to round")
    check_words(words, kind.unfit(columns), kind.fit)
    if kind.spaced:
        _warn_of_spaces(path, words)
    step = max(1, _blocks.BLOCK // (columns * dtype.itemsize))

    def blocks() -> Iterator[tuple[Sequence[str], np.ndarray]]:
        for first in range(0, len(words), many or step):
            taken = take(first, min(first + (many or step), len(words)))
            for i in range(first, first + len(taken), step):
                shown("vectors", min(i / len(words), 0.99))
                rows = taken[i - first : i - first + step]
                where = lambda place, i=i: f"vectors: row {i + place}, from 0"  # noqa: E731
                yield words[i : i + len(rows)], _blocks.cast(rows, dtype, where)

    with ExitStack() as stack:
        if name == "npy" and listed is None:
            listed = _lists.beside(path)
        digest = ""
        if listed is not None:
            part = stack.enter_context(write_whole(listed))
            digest = _lists.write(Path(listed), part, words)
        file = stack.enter_context(_blocks.packed(path, stack.enter_context(write_whole(path))))
        held = words if listed is None else None
        kind.write(file, _blocks.Given(held, (len(words), columns), dtype, blocks(), digest))
    shown("vectors", 1.0)


def _check_path(path: Any) -> None:
    if not isinstance(path, str | Path):
        do = "pass the file first, then the vectors"
        fail("path", f"a {type(path).__name__}", "the name of a file", do, TypeError)


def _warn_of_spaces(path: Path, words: Sequence[str]) -> None:
    spaced = [word for word in words if " " in word or "\t" in word]
    if spaced:
        message = (
            f"{path}: {len(spaced)} words have spaces inside, such as {spaced[0]!r}: read_vectors "
            "reads them, and readers that split lines at spaces do not; .npz, .npy and "
            ".safetensors hold any words."
        )
        warnings.warn(message, UserWarning, stacklevel=4)


def as_vectors(source: Any) -> Vectors:
    """Take vectors from what other libraries hold.

    `source` is Vectors or a pair of words and a matrix; a pair of a dict from words to rows and a
    matrix, as `tokenizer.get_vocab()` and the input table of a transformer; a dict from words to
    vectors; gensim's KeyedVectors or a model with `wv`; or model2vec's StaticModel.

    >>> as_vectors({"a": [0.0, 1.0], "b": [0.5, 0.25]})
    Vectors(2 words x 2 dimensions, float64: 'a', 'b')
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
    elif isinstance(source, Vectors) or (isinstance(source, tuple) and len(source) == 2):
        words, matrix = source
    else:
        got, do = f"a {type(source).__name__}", "pass a pair of words and a matrix"
        if isinstance(source, str | Path):
            got, do = repr(str(source)), "read a file with read_vectors first"
        elif hasattr(source, "sources"):
            got, do = "several sources", "combine them first, with meta_embedding"
        fail("source", got, "vectors of a kind that is known", do, TypeError)
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or 0 in matrix.shape:
        fail("matrix", f"shape {matrix.shape}", "a row for each word", "reshape it")
    matrix = matrix.astype(_blocks.float_dtype("matrix", matrix.dtype), copy=False)
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


def cosines(u: Float[np.ndarray, "p k"], v: Float[np.ndarray, "p k"]) -> Float[np.ndarray, " p"]:
    """Compute cosines of rows: 0 if one has length 0, and exactly 1 if the two are equal."""
    u, v = _scaled(u), _scaled(v)
    # The root of a square is exact, the product of two roots is not.
    lengths = np.sqrt(np.einsum("pk,pk->p", u, u) * np.einsum("pk,pk->p", v, v))
    return np.einsum("pk,pk->p", u, v) / np.where(lengths == 0, 1, lengths)


def _scaled(x: Float[np.ndarray, "p k"]) -> Float[np.ndarray, "p k"]:
    """Divide rows, in float64, by a power of two, so that no square of them overflows."""
    x = x.astype(np.float64)
    _, exponents = np.frexp(np.abs(x).max(axis=1, keepdims=True))
    return np.ldexp(x, -exponents)
