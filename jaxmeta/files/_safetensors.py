"""The container of safetensors: the length of a JSON text, that text, and then all numbers.

It is read by hand so that rows can be taken from any place of a file, and written by hand so that
tables are never held whole: the package does neither.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jaxmeta._checks import fail
from jaxmeta._files import intact

__all__ = ["SIZES", "Tensor", "read_header", "write_header"]

SIZES = {"BF16": 2, "F16": 2, "F32": 4, "F64": 8}
"""Bytes of a number, of the kinds that are read here."""
LONGEST = 100_000_000  # bytes of the text: the format ends there


class Tensor(NamedTuple):
    """Numbers in a file."""

    kind: str
    shape: tuple[int, ...]
    start: int
    """The offset of the first in the file."""
    stop: int


def read_header(path: Path, file: Any) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Read the metadata and where tensors are, all of which must be there."""
    size = path.stat().st_size
    with intact(path, "no whole safetensors file", "one", "fetch or save it again"):
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= min(LONGEST, size - 8):
            raise ValueError(f"{size} bytes, and a header of {length}")
        header = json.loads(file.read(length).decode())
        metadata = header.pop("__metadata__", None) or {}
        if not all(isinstance(x, str) for pair in metadata.items() for x in pair):
            raise ValueError("metadata that is no text")
        tensors = {name: _tensor(name, each, 8 + length) for name, each in header.items()}
        end = 8 + length
        for name, tensor in sorted(tensors.items(), key=lambda item: item[1][2:]):
            if tensor.start != end:
                raise ValueError(f"numbers of {name} from byte {tensor.start}, not {end}")
            end = tensor.stop
        if end != size:
            raise ValueError(f"{size} bytes, and not {end}")
    return metadata, tensors


def _tensor(name: str, given: Any, start: int) -> Tensor:
    kind, shape = given["dtype"], tuple(given["shape"])
    first, last = given["data_offsets"]
    if not all(type(number) is int and number >= 0 for number in (*shape, first, last)):
        raise ValueError(f"shape {shape} and offsets {first} to {last} of {name}")
    if kind in SIZES and last - first != math.prod(shape) * SIZES[kind]:
        raise ValueError(f"{last - first} bytes for {kind} of shape {shape}")
    return Tensor(kind, shape, start + first, start + last)


def write_header(
    file: Any, tensors: Mapping[str, tuple[str, Sequence[int]]], metadata: Mapping[str, str]
) -> None:
    """Write the text on tensors of these kinds and shapes, whose numbers come in that order."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, (kind, shape) in tensors.items():
        start, end = end, end + math.prod(shape) * SIZES[kind]
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header, ensure_ascii=False).encode()
    if len(text) > LONGEST * 9 // 10:
        fail("words", "more than 90 MB", "less in the metadata", "pass words=, a file for them")
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
