"""The format of safetensors: one matrix, with words in the metadata or beside it."""

import json
import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta.files import _blocks

__all__ = ["read", "safetensors_header"]


def read(path: Path, limit: int, words: Any) -> _blocks.Blocks:
    package = _checks.package("safetensors", "io")
    try:
        opened = package.safe_open(path, framework="np")
    except package.SafetensorError as error:
        fail(str(path), f"no whole safetensors file ({error})", "one", "fetch or save it again")
    with opened as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        matrices = [name for name, shape in shapes.items() if len(shape) == 2]
        if len(matrices) != 1:
            fail(str(path), f"tensors {shapes}", "one matrix", "save the one that is wanted")
        part = file.get_slice(matrices[0])
        dtype = np.dtype(_blocks.DTYPES.get(part.get_dtype(), np.void))
        if dtype.kind == "V":
            expected = "float16, float32 or float64"
            fail(str(path), f"dtype {part.get_dtype()}", expected, "cast to one of these")
        metadata = file.metadata() or {}
        if words is None and "words" in metadata:
            words = json.loads(metadata["words"])
        with closing(_blocks.listed(path, words)) as listed:
            take = lambda i, j: part[i:j]  # noqa: E731
            yield from _blocks.by_rows(path, listed, shapes[matrices[0]], dtype, take, limit)


def safetensors_header(
    shape: tuple[int, int], dtype: np.dtype, words: Sequence[str] | None
) -> bytes:
    """The length of a JSON text, and that. Their own writer lets nobody else read its files."""
    name = next(name for name, kind in _blocks.DTYPES.items() if kind == dtype)
    ends = [0, math.prod(shape) * dtype.itemsize]
    header: dict[str, Any] = {"vectors": {"dtype": name, "shape": shape, "data_offsets": ends}}
    if words is not None:
        header["__metadata__"] = {"words": json.dumps(words, ensure_ascii=False)}
    text = json.dumps(header, ensure_ascii=False).encode()
    if len(text) > 90_000_000:  # the format ends at 10^8
        fail("words", "more than 90 MB", "less in the metadata", "pass words=, a file for them")
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
