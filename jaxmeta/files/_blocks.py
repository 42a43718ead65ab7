"""Blocks of words and rows, and what readers and writers of several formats share."""

import bz2
import gzip
import itertools
import re
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from jaxmeta._checks import fail
from jaxmeta._files import opened

__all__ = [
    "BLOCK",
    "DTYPES",
    "HEADER",
    "LONGEST",
    "MARK",
    "PACKED",
    "Asked",
    "Block",
    "Blocks",
    "Given",
    "Stored",
    "at_each_byte",
    "cast",
    "float_dtype",
    "line_blocks",
    "most_unpacked",
    "packed",
    "unpacked",
]

BLOCK = 1 << 19  # bytes read at a time: what is made of them stays in the processor's cache
LONGEST = 1 << 22  # bytes of a line, or of a word
DTYPES = {"F16": np.float16, "F32": np.float32, "F64": np.float64}
MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # of the byte order, at the start of a text
PACKED = (".gz", ".bz2", ".zip")
HEADER = re.compile(rb"(?:\xef\xbb\xbf)?(\d{1,18}) (\d{1,18}) *\r?\n")


class Asked(NamedTuple):
    """A reader is asked for this."""

    path: Path
    format: str | None  # as the caller named it
    limit: int  # rows after so many are not looked at
    words: str | Path | Sequence[str] | None  # those of a matrix, or a file of them
    dtype: np.dtype | None  # what numbers are cast to afterwards
    tensor: str | None = None  # the one that is wanted, where a file has several


class Stored(NamedTuple):
    """Rows stand in a file as they are, and can be taken from it in any order."""

    offsets: np.ndarray  # of the first byte of each
    size: int  # bytes of a row
    decode: Callable[[np.ndarray], np.ndarray]  # from an array of such bytes to rows


class Block(NamedTuple):
    """Some rows of a file, whose numbers are made when they are asked for."""

    words: Sequence[bytes | str]
    rows: Callable[[np.ndarray], np.ndarray]  # from places in the block to their rows
    where: Callable[[int], str]  # from a place to the file and the line, offset or row
    done: float  # the fraction of the file that is read
    stored: Stored | None = None  # where the rows are in the file, if they can be found again


Blocks: TypeAlias = Generator[Block, None, None]


class Given(NamedTuple):
    """A writer is given this."""

    words: Sequence[str] | None  # None: they are in a list beside the file
    shape: tuple[int, int]
    dtype: np.dtype
    blocks: Iterator[tuple[Sequence[str], np.ndarray]]  # some words and their vectors at a time
    listed: str = ""  # the digest of that list


def most_unpacked(path: Path) -> int:
    """Say how many bytes the content of a packed file may have: few more unpack to fill memory."""
    return 10 * path.stat().st_size + (1 << 26)


def at_each_byte(buffer: Any, size: int) -> np.ndarray:
    """View a buffer as the items, of so many bytes, that begin at each of its bytes."""
    return np.ndarray((len(buffer) - size + 1,), f"V{size}", buffer, strides=(1,))


def float_dtype(name: str, dtype: Any) -> np.dtype:
    """Bring a dtype into the machine's byte order, if it is one of `DTYPES`."""
    found = np.dtype(dtype).newbyteorder("=")
    if found not in map(np.dtype, DTYPES.values()):
        got = f"dtype {np.dtype(dtype)}"
        fail(name, got, "float16, float32 or float64", "cast to one of these")
    return found


def cast(rows: np.ndarray, dtype: np.dtype | None, where: Callable[[int], str]) -> np.ndarray:
    """Cast rows to another dtype, in which all numbers must be finite."""
    dtype = float_dtype(where(0), rows.dtype) if dtype is None else dtype
    with np.errstate(over="ignore"):
        found = rows.astype(dtype, copy=False)
    if not np.isfinite(found).all():
        i, j = np.argwhere(~np.isfinite(found))[0].tolist()
        fits = not np.isfinite(rows[i, j])
        do = "remove or repair that row" if fits else "pass dtype=np.float64, or scale the vectors"
        fail(where(i), f"{rows[i, j]} in column {j}", f"finite numbers of {dtype}", do)
    return found


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[Any, Callable[[], float]]]:
    """Open a file, packed or not; give its content and a function for the fraction that is read."""
    with path.open("rb") as raw:
        texts = list(itertools.islice(opened(path, raw, most_unpacked(path)), 2))
        if len(texts) != 1:
            got = "several files" if texts else "no file"
            fail(str(path), got, "an archive with one", "unpack the one that is wanted")
        size = max(path.stat().st_size, 1)
        yield texts[0][1], lambda: raw.tell() / size


@contextmanager
def packed(path: Path, part: Path) -> Iterator[Any]:
    """Open a file to write, packed as the name of `path` says: the same content, the same bytes."""
    with ExitStack() as stack:
        raw = stack.enter_context(part.open("wb"))
        match path.suffix.lower():
            case ".gz":
                yield stack.enter_context(gzip.GzipFile("", "wb", 6, raw, mtime=0))
            case ".bz2":
                yield stack.enter_context(bz2.BZ2File(raw, "wb"))
            case ".zip":
                archive = stack.enter_context(zipfile.ZipFile(raw, "w"))
                member = zipfile.ZipInfo(path.stem)
                member.compress_type = zipfile.ZIP_DEFLATED
                yield stack.enter_context(archive.open(member, "w", force_zip64=True))
            case _:
                yield raw


def line_blocks(path: Path, file: Any) -> Iterator[bytes]:
    """Cut a text into blocks of whole lines, each with its end."""
    rest, more = b"", b"more"
    while more:
        more = file.read(BLOCK)
        cut = more.rfind(b"\n") + 1
        if cut:
            yield rest + more[:cut]
            rest = b""
        rest += more[cut:]
        if len(rest) > LONGEST:
            fail(str(path), f"{len(rest)} bytes without a new line", "text", "pass format=")
    if rest:
        yield rest + b"\n"
