"""The one table of formats, and the one that a name tells."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmeta._checks import fail
from jaxmeta.files import _binary, _blocks, _matrices, _text

__all__ = ["FORMATS", "Format", "format_of"]


class Format(NamedTuple):
    """How files of a format are read and written."""

    suffixes: tuple[str, ...]
    read: Callable[[_blocks.Asked], _blocks.Blocks]
    write: Callable[[Any, _blocks.Given], None]
    unfit: Callable[[int], Callable[[str], Any]]  # from columns to a test for words it cannot hold
    fit: str  # what other words are
    packed: bool = False  # whether the file may be
    listed: bool = False  # whether words may be in a list beside it
    dtype: Any = None  # what numbers become unless something else is asked for
    spaced: bool = False  # whether others take a space in a word for the end of it


def _found(pattern: str) -> Callable[[int], Callable[[str], Any]]:
    """Make a test for words in which a pattern is found, whatever comes after them."""
    search = re.compile(pattern).search
    return lambda columns: search  # noqa: ARG005


_TEXT = _text.unfit, "not ending in white space and a number", True, False, np.float32, True
_LIST = _found(r"\r\Z"), "not ending in a carriage return", False, True
FORMATS = {
    "word2vec": Format((".txt", ".vec"), _text.read, _text.write, *_TEXT),
    "glove": Format((".glove",), _text.read, partial(_text.write, header=False), *_TEXT),
    "bin": Format((".bin",), _binary.read, _binary.write, _found(" "), "without spaces", True),
    "npz": Format((".npz",), _matrices.read_npz, _matrices.write_npz, _found("\0"), "without NUL"),
    "npy": Format((".npy",), _matrices.read_npy, _matrices.write_npy, *_LIST),
    "safetensors": Format(
        (".safetensors",), _matrices.read_tensors, _matrices.write_tensors, *_LIST
    ),
}


def format_of(path: str | Path, format: str | None = None) -> str:
    """Name the format that is given, or that the name of a file tells."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in _blocks.PACKED else ""
    if format is None:
        kinds = {suffix: name for name, kind in FORMATS.items() for suffix in kind.suffixes}
        format = kinds.get("".join(suffixes[-1:]))
        got, expected = f"a name ending in {suffixes[-1:] or ['nothing']}", ", ".join(kinds)
    else:
        got, expected = f"format {format!r}", ", ".join(FORMATS)
    if format not in FORMATS:
        fail(str(path), got, f"one of {expected}", f"pass format=, one of {', '.join(FORMATS)}")
    if packed and not FORMATS[format].packed:
        fail(str(path), packed, f"{format} as it is", "packing is for text and .bin: unpack it")
    return format
