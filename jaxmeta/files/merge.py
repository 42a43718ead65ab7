r"""`merge_files` does what reading, `align`, `fit`, `apply` and writing do, by blocks of rows.

Files are read through for their words; moments of the aligned rows are summed up, which is all that
a linear method has to know; and then every row goes through the plan and is written. What is held
in memory is a block, $K \times K$ numbers, and words.
"""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Real

from jaxmeta import _checks
from jaxmeta._files import write_whole
from jaxmeta.covariance import moments
from jaxmeta.files._formats import FORMATS, format_of
from jaxmeta.files._tables import Table, opened_table
from jaxmeta.files._words import check_words
from jaxmeta.files.alignment import Coverage, common_rows, coverage_of
from jaxmeta.files.plan_files import write_plan
from jaxmeta.files.vectors import write_rows
from jaxmeta.plans import (
    PLANS,
    Plan,
    Settings,
    apply_plan,
    check_k,
    check_needs,
    needs,
    plan_of,
    reduced,
)
from jaxmeta.progress import Progress, silent

__all__ = ["merge_files"]

BLOCK = 1 << 24  # bytes of rows at a time: products are fast, and caches hold much of it

Weights = Sequence[Real[np.ndarray, "..."] | float]


def merge_files(
    paths: Sequence[str | Path],
    out: str | Path,
    *,
    method: str | Plan = "UW",
    k: int | float | None = None,
    weights: Weights | None = None,
    settings: Settings | None = None,
    vocabulary: Literal["intersection", "union"] | Collection[str] = "intersection",
    missing: Literal["zero", "mean"] = "zero",
    dtype: Any = None,
    names: Sequence[str] | None = None,
    plan_to: str | Path | None = None,
    progress: Progress | None = None,
) -> tuple[Coverage, ...]:
    r"""Combine the sources in `paths`, of any size, write the result, and say what each covers.

    Names of files tell their formats, see `jaxmeta.files.vectors`. The result takes the place of
    `out` when it is whole; until then, and if anything goes wrong, `out` is as it was.

    Parameters
    ----------
    method
        One of `jaxmeta.plans.PLANS`, "UW" for the concatenation as it is, and "default" where
        nothing is known of the sources; or a plan, that of `fit` or `load_plan`, for more words of
        the sources that it was fitted to, in the same order.
    k
        Dimensions of the result, or the share of its PIP norm that fewer may cost; as in
        `Settings`.
    weights
        Of "UW", as in `concatenate`: a number for each source, or one for each of its dimensions.
    settings
        What the method may need beside the sources, such as `sigmas`.
    vocabulary
        "intersection", "union", or words, as in `align`.
    missing
        What stands for words that a source lacks: "zero", and then they do not count when the
        method is fitted; or the "mean" of its rows, as any other row.
    dtype
        That of the result; None is float32, or float64 if a source is.
    names
        Of the sources, for the table of coverage and for the plan; None: those of the files.
    plan_to
        A file to save the plan in, for `load_plan`.
    progress
        It is called with "read", "fit" and "vectors", and the fraction of each.

    Cost: files are read once for words, and again for each of moments (if the method needs them)
    and rows; $O(nK^2)$ flops but for "UW". Memory: a block, $O(K^2)$, and the words. Text and what
    is packed is kept as plain numbers in the folder of `out` for that time.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     one, two, both = (Path(folder) / name for name in ("1.txt", "2.txt", "both.txt"))
    ...     _ = one.write_text("the 1 2\nof 3 4\n"), two.write_text("of 5\nthe 6\n")
    ...     print(merge_files([one, two], both, weights=(1.0, 0.5))[1].found)
    2
    """
    if isinstance(paths, str | Path) or not paths:
        _checks.fail("paths", repr(paths), "a file per source", "pass a list of them")
    settings = settings or Settings()
    if not isinstance(method, Plan):
        method = _checks.named("method", method, PLANS)
    _check_method(method, k, weights, settings, missing)
    settings = settings if k is None else settings._replace(k=k)
    if names is not None:
        _checks.count("names", names, len(paths))
    places, out, shown = list(map(Path, paths)), Path(out), progress or silent
    kind = FORMATS[format_of(out)]  # before much is read
    with ExitStack() as stack:
        aligned = _Aligned(stack, places, names, out, vocabulary, missing, shown)
        check_words(aligned.words, kind.unfit(sum(aligned.widths)), kind.fit)
        if isinstance(method, Plan) and method.widths != aligned.widths:
            do = "pass the sources that the plan was fitted to, in that order"
            got, expected = f"widths {aligned.widths}", f"{method.widths}, those of the plan"
            _checks.fail("paths", got, expected, do)
        plan = _fitted(aligned, method, weights, settings, shown)
        if plan_to is not None:
            stems = names or [place.name.partition(".")[0] for place in places]
            write_plan(stack.enter_context(write_whole(plan_to)), plan, stems)
        if _scales_alone(plan):
            dtype, take = aligned.dtype if dtype is None else dtype, _scaled(aligned, plan, weights)
        else:
            found = jax.dtypes.canonicalize_dtype(aligned.dtype)
            dtype, take = found if dtype is None else dtype, _planned(aligned, plan)
        write_rows(
            out, aligned.words, plan.width, take, dtype, progress=progress, many=aligned.step
        )
    return aligned.coverage


def _check_method(method: Any, k: Any, weights: Any, settings: Settings, missing: str) -> None:
    do = "missing='predict' needs all rows at once: align(read_vectors(...)) first"
    if missing not in ("zero", "mean"):
        _checks.fail("missing", repr(missing), "'zero' or 'mean'", do)
    if settings.present is not None:
        do = "leave it out: files say which words they have"
        _checks.fail("settings.present", "an array", "None", do)
    if isinstance(method, Plan):
        if k is not None or weights is not None or settings.k is not None:
            do = "fit another with method=, a name"
            _checks.fail("method", "a plan, and k or weights", "a plan alone", do)
        return
    if weights is not None and method != "UW":
        do = "pass one of them: 'UW' is the method that takes weights"
        _checks.fail("weights", f"some for {method!r}", "None", do)
    if weights is not None and settings.shrink:
        do = "leave one of them out"
        _checks.fail("settings.shrink", "True, and weights", "one of the two", do)
    cut = settings.k if k is None else k
    if isinstance(cut, float) and not 0 <= cut < 1:
        do = "pass an int for a number of dimensions, or a fraction such as 0.05"
        _checks.fail("k", str(cut), "a fraction from 0 to below 1", do)
    check_needs(method, PLANS[method].needs, settings)


class _Aligned:
    """Files with the same words, of which blocks of rows can be taken."""

    def __init__(
        self,
        stack: ExitStack,
        paths: Sequence[Path],
        names: Sequence[str] | None,
        out: Path,
        vocabulary: str | Collection[str],
        missing: str,
        shown: Progress,
    ) -> None:
        folder = next(place for place in out.absolute().parents if place.is_dir())
        self.tables: list[Table] = []
        shown("read", 0.0)
        for j, path in enumerate(paths):
            part = lambda done, j=j: shown("read", (j + done) / len(paths))  # noqa: E731
            mean = missing == "mean"
            self.tables.append(opened_table(path, stack, folder, mean=mean, shown=part))
        names = list(names or map(str, paths))
        self.words, self._rows = common_rows([t.words for t in self.tables], names, vocabulary)
        sizes = [len(table.words) for table in self.tables]
        self.coverage = coverage_of(sizes, names, self._rows, missing)
        self.widths = tuple(table.columns for table in self.tables)
        self.dtype = np.result_type(np.float32, *(table.dtype for table in self.tables))
        self.lacking = missing == "zero" and any(each.filled for each in self.coverage)
        self.step = max(1, BLOCK // (sum(self.widths) * self.dtype.itemsize))

    def present(self, i: int, j: int) -> np.ndarray | None:
        """Whether sources have words i to j, None if all have all words that count."""
        if not self.lacking:
            return None
        return np.stack([row[i:j] >= 0 for row in self._rows], axis=1)

    def blocks(self, i: int, j: int) -> list[np.ndarray]:
        """Rows of each source for words i to j, as they are stored if it has them all."""
        found = []
        for table, row in zip(self.tables, self._rows, strict=True):
            has = row[i:j] >= 0
            if has.all():
                found.append(table.rows(row[i:j]))
                continue
            rows = np.zeros((len(has), table.columns), self.dtype)
            rows[has] = table.rows(row[i:j][has])
            if table.mean is not None:
                rows[~has] = table.mean
            found.append(rows)
        return found


def _fitted(
    aligned: _Aligned, method: str | Plan, weights: Any, settings: Settings, shown: Progress
) -> Plan:
    """The plan, for which moments are summed up block by block if the method needs any."""
    if isinstance(method, Plan):
        return method
    if aligned.lacking and not PLANS[method].missing:
        got, do = "'zero' for words that are lacking", "pass missing='mean', or an intersection"
        _checks.fail("missing", got, f"all words for {method}", do)
    check_k(settings.k, sum(aligned.widths), "k")  # before much is read
    dtype = jax.dtypes.canonicalize_dtype(aligned.dtype)
    n, wanted = len(aligned.words), needs(method, settings)
    if not wanted["parts"]:  # nothing of the rows but how many there are
        none = np.zeros((), dtype)
        stats = moments(tuple(np.broadcast_to(none, (n, k)) for k in aligned.widths), **wanted)
    else:
        for i in range(0, n, aligned.step):
            shown("fit", i / n)
            j = min(i + aligned.step, n)
            present = aligned.present(i, j)
            given = None if present is None else jnp.asarray(present)
            part = moments(tuple(aligned.blocks(i, j)), given, **wanted)
            stats = part if i == 0 else stats + part
        shown("fit", 1.0)
    if weights is None:
        return plan_of(method, stats, settings)
    scales = tuple(jnp.asarray(scale, dtype) for scale in _scales(aligned, weights))
    plan = plan_of("UW", stats, settings._replace(k=None))
    plan = dataclasses.replace(plan, maps=scales)
    return plan if settings.k is None else reduced(plan, stats, settings.k)


def _scales(aligned: _Aligned, weights: Any) -> list[np.ndarray]:
    """A weight for each column of each source, in the dtype of the files."""
    weights = _checks.weights("weights", weights, aligned.widths)
    pairs = zip(weights, aligned.widths, strict=True)
    return [np.broadcast_to(np.asarray(weight, aligned.dtype), (k,)) for weight, k in pairs]


def _scales_alone(plan: Plan) -> bool:
    """Whether nothing is done to a row but that columns are scaled and put side by side."""
    plain = plan.centres is None and not plan.unit and plan.join == "concatenate"
    return plain and all(move.ndim == 1 for move in plan.maps)


def _scaled(aligned: _Aligned, plan: Plan, weights: Any) -> Callable[[int, int], np.ndarray]:
    """Scale columns in the dtype of the files, which may be one that JAX does not have."""
    if weights is None:
        scales = [np.asarray(move, aligned.dtype) for move in plan.maps]
    else:
        scales = _scales(aligned, weights)
    cuts = np.cumsum(aligned.widths)

    def take(i: int, j: int) -> np.ndarray:
        result = np.empty((j - i, cuts[-1]), aligned.dtype)
        parts = np.split(result, cuts[:-1], axis=1)
        for rows, scale, part in zip(aligned.blocks(i, j), scales, parts, strict=True):
            np.multiply(rows, scale, out=part)
        return result

    return take


def _planned(aligned: _Aligned, plan: Plan) -> Callable[[int, int], np.ndarray]:
    """Apply a plan to blocks of one size, so that it is compiled once."""
    dtype = np.result_type(aligned.dtype, *(leaf.dtype for leaf in jax.tree.leaves(plan)))
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    plan = jax.tree.map(lambda x: jnp.asarray(x, dtype), plan)
    step = min(aligned.step, len(aligned.words))
    sources = [np.zeros((step, k), dtype) for k in aligned.widths]

    def take(i: int, j: int) -> np.ndarray:
        for source, rows in zip(sources, aligned.blocks(i, j), strict=True):
            source[: j - i] = rows
        present = aligned.present(i, j)
        if present is not None:
            present = np.pad(present, ((0, step - (j - i)), (0, 0)))
        given = None if present is None else jnp.asarray(present)
        return np.asarray(apply_plan(plan, tuple(map(jnp.asarray, sources)), given))[: j - i]

    return take
