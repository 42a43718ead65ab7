"""The format of safetensors: one matrix, with words in the metadata or beside it."""

import json
import math
from typing import Any

import numpy as np

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta.files import _blocks

__all__ = ["read", "write"]


def read(asked: _blocks.Asked) -> _blocks.Blocks:
    """Read blocks of the one matrix in a file."""
    path, words = asked.path, asked.words
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
        kind = part.get_dtype()
        if kind not in _blocks.DTYPES:
            do = "cast to one of these"
            fail(str(path), f"dtype {kind}", "float16, float32 or float64", do)
        metadata = file.metadata() or {}
        if words is None and "words" in metadata:
            words = json.loads(metadata["words"])
        dtype = np.dtype(_blocks.DTYPES[kind])
        yield from _blocks.by_rows(asked, words, shapes[matrices[0]], dtype, part.__getitem__)


def write(file: Any, given: _blocks.Given) -> None:
    """Write the length of a JSON text, that text, and the rows.

    The package's own writer wants the whole matrix, and lets nobody else read its files.
    """
    name = next(name for name, kind in _blocks.DTYPES.items() if kind == given.dtype)
    ends = [0, math.prod(given.shape) * given.dtype.itemsize]
    matrix = {"dtype": name, "shape": given.shape, "data_offsets": ends}
    header: dict[str, Any] = {"vectors": matrix}
    if given.words is not None:
        header["__metadata__"] = {"words": json.dumps(given.words, ensure_ascii=False)}
    text = json.dumps(header, ensure_ascii=False).encode()
    if len(text) > 90_000_000:  # the format ends at 10^8
        fail("words", "more than 90 MB", "less in the metadata", "pass words=, a file for them")
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    _blocks.write_matrix(file, given)
