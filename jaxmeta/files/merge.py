"""`merge_files` does what reading, `align`, `concatenate` and writing do, by blocks of rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Real

from jaxmeta import _checks
from jaxmeta.files.alignment import Coverage, common_rows, coverage_of
from jaxmeta.files.vectors import format_of, read_vectors, write_rows
from jaxmeta.progress import Progress, silent

__all__ = ["merge_files"]


def merge_files(
    paths: Sequence[str | Path],
    out: str | Path,
    *,
    weights: Sequence[Real[np.ndarray, "..."] | float] | None = None,
    vocabulary: Literal["intersection", "union"] = "intersection",
    dtype: Any = None,
    progress: Progress | None = None,
) -> tuple[Coverage, ...]:
    r"""Write $[E_1C_1 \ldots E_NC_N]$ of the sources in `paths` to `out`, and say what each covers.

    Names of files tell their formats, see `jaxmeta.files.vectors`. `weights[j]` is a number or one
    for each dimension of source $j$, as in `concatenate`; None means all 1. `vocabulary` is as in
    `align`: in a union, words that a source lacks have zeros there. `dtype` is that of the result;
    None is float32, or float64 if a source is. `progress` is called with "read" and then with
    "vectors", and the fraction of each.

    Cost: $O(nK)$; memory for the sources and a dictionary of the words of each.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, two, both = (Path(folder) / name for name in ("1.txt", "2.txt", "both.txt"))
    ...     _ = one.write_text("the 1 2\nof 3 4\n"), two.write_text("of 5\nthe 6\n")
    ...     print(merge_files([one, two], both, weights=(1.0, 0.5))[1].found)
    2
    """
    if isinstance(paths, str | Path) or not paths:
        _checks.fail("paths", repr(paths), "a file per source", "pass a list of them")
    shown, names = progress or silent, list(map(str, paths))
    format_of(out)  # before much is read
    sources = []
    shown("read", 0.0)
    for path in paths:
        sources.append(read_vectors(path))
        shown("read", len(sources) / len(paths))
    widths = [source.matrix.shape[1] for source in sources]
    widest = np.result_type(np.float32, *(source.matrix.dtype for source in sources))
    weights = [1.0] * len(sources) if weights is None else weights
    _checks.numbers_per_source("weights", weights, widths)
    scales = [np.asarray(weight, widest) for weight in weights]
    words, rows = common_rows(sources, names, vocabulary)
    ends = np.cumsum(widths)

    def take(i: int, j: int) -> np.ndarray:
        block = np.empty((j - i, ends[-1]), widest)
        parts = np.split(block, ends[:-1], axis=1)
        for source, row, scale, part in zip(sources, rows, scales, parts, strict=True):
            np.multiply(source.matrix[row[i:j]], scale, out=part)
            part[row[i:j] < 0] = 0
        return block

    dtype = widest if dtype is None else dtype
    write_rows(out, words, int(ends[-1]), take, dtype, progress=progress)
    return coverage_of(sources, names, rows, "zero")
