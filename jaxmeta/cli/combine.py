"""`jaxmeta combine` makes one file of several, and `jaxmeta apply` does the same to other files."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import jaxmeta as jm
from jaxmeta.cli import report as reports
from jaxmeta.cli.shared import (
    AsJson,
    Cut,
    Files,
    Force,
    MethodName,
    Missing,
    Numbers,
    Out,
    Seed,
    Words,
    choice,
    cut,
    dtype_of,
    method_named,
    outputs,
    progress,
    put,
    put_json,
    read_aligned,
    refuse,
    stems,
    table,
    vocabulary_of,
)

__all__ = ["apply", "combine"]


def _list(wanted: bool) -> bool:
    """Show all methods."""
    if wanted:
        rows = [(name, each.summary, each.needs) for name, each in jm.METHODS.items()]
        table(("method", "what it is", "needs"), rows)
        raise typer.Exit()
    return wanted


def combine(
    files: Files,
    out: Out,
    method: MethodName = "default",
    k: Cut = "all",
    vocabulary: Words = "intersection",
    missing: Missing = "zero",
    dtype: Numbers = None,
    seed: Seed = 0,
    save_plan: Annotated[
        Path | None, typer.Option(help="Keep what was fitted in this file, for `jaxmeta apply`.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="X.html|X.png", help="What each file does to the result, as a page."),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    list_: Annotated[
        bool, typer.Option("--list", callback=_list, is_eager=True, help="Show all methods.")
    ] = False,
) -> None:
    """Combine files of vectors into one.

    Linear methods take files of any size, block by block; others, `--missing predict` and
    `--report` take them into memory.
    """
    del list_
    name, wanted, words = method_named(method), cut(k), vocabulary_of(vocabulary)
    fill = choice("--missing", missing, ("zero", "mean", "predict"))
    inputs: list[Any] = [*files, *([] if isinstance(words, str) else [vocabulary])]
    outputs((out, save_plan, report), inputs, force)
    if save_plan and name not in jm.plans.PLANS:
        do = "choose a linear method, such as default, or leave --save-plan out"
        refuse("--save-plan", f"a file for {name}", "a linear method", do)
    jm.files.vectors.format_of(out)
    if report:
        reports.check(report)
    names, numbers = stems(files), dtype_of(dtype)
    given = {"vocabulary": words, "missing": fill, "names": names}
    if name in jm.plans.PLANS and fill != "predict":
        with tempfile.TemporaryDirectory() as folder:
            place = save_plan or Path(folder) / "plan"
            coverage = jm.merge_files(
                files, out, method=name, k=wanted, dtype=numbers, plan_to=place,
                progress=progress(), **given,
            )  # fmt: skip
            plan: Any = jm.files.load_plan(place)
        width = plan.width
    else:
        plan, found, coverage = _in_memory(name, files, wanted, seed, given, save_plan)
        width = found.matrix.shape[1]
        jm.write_vectors(out, found, dtype=numbers, progress=progress())
    whole = getattr(plan, "values", None)  # of all directions, if it was cut
    facts = {
        "out": out,
        "method": name,
        "words": coverage[0].found + coverage[0].filled,
        "dimensions": width,
        "of": width if whole is None else len(whole),
        "changed": None if whole is None else float(plan.lost),
        "plan": save_plan,
        "report": report,
    }
    if report:
        settings = {"name": name, "seed": seed, **given}
        reports.write(report, files, facts, coverage, **settings)
    _show(facts, coverage, as_json)


def _in_memory(
    name: str,
    files: Sequence[Path],
    k: int | float | None,
    seed: int,
    given: dict[str, Any],
    save_plan: Path | None,
) -> tuple[Any, Any, Any]:
    """The plan, if there is one, the rows, and what each file covers."""
    import jax

    together = read_aligned(files, **given)
    settings = jm.Settings(k=k, key=jax.random.key(seed), progress=progress())
    if name not in jm.plans.PLANS:
        return None, jm.meta_embedding(name, together, settings), together.coverage
    plan = jm.fit(name, together, settings)
    if save_plan:
        jm.files.save_plan(save_plan, plan, names=given["names"])
    return plan, jm.apply(plan, together), together.coverage


def apply(
    plan: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="What --save-plan has written.")
    ],
    files: Files,
    out: Out,
    vocabulary: Words = "intersection",
    missing: Missing = "zero",
    dtype: Numbers = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Do to other files what a plan did to those that it was fitted to, in the same order."""
    words = vocabulary_of(vocabulary)
    fill = choice("--missing", missing, ("zero", "mean"))
    outputs((out,), [plan, *files, *([] if isinstance(words, str) else [vocabulary])], force)
    header, names = jm.files.plan_header(plan), stems(files)
    same = sorted(header["names"]) == sorted(names)
    # Files of new words have new names; the same names in another order are a mistake.
    known = jm.files.load_plan(plan, names=names if same else None)
    coverage = jm.merge_files(
        files, out, method=known, vocabulary=words, missing=fill, dtype=dtype_of(dtype),
        names=names, progress=progress(),
    )  # fmt: skip
    facts = {
        "out": out,
        "method": known.method,
        "words": coverage[0].found + coverage[0].filled,
        "dimensions": known.width,
        "plan": plan,
        "fitted_to": header["names"],
        "rows_fitted_to": header["rows"],
    }
    _show(facts, coverage, as_json)


def _show(facts: dict[str, Any], coverage: Sequence[Any], as_json: bool) -> None:
    if as_json:
        put_json(facts | {"sources": coverage})
        return
    rows = [
        (each.name, f"{each.words:,}", f"{each.found:,}", f"{each.share:.1%}",
         f"{each.filled:,} by {each.how}" if each.filled else "none")
        for each in coverage
    ]  # fmt: skip
    table(("source", "its words", "of the result", "share", "filled in"), rows)
    put()
    put(f"{facts['out']}: {facts['words']:,} words x {facts['dimensions']:,} dimensions")
    if facts.get("changed") is not None:
        cost = f"which changes inner products by {facts['changed']:.1%}"
        put(f"These are {facts['dimensions']:,} of {facts['of']:,} directions, {cost}.")
    if facts.get("fitted_to"):
        put(f"The plan was fitted to {' and '.join(facts['fitted_to'])}, in that order.")
    for name in ("plan", "report"):
        if facts.get(name) and "fitted_to" not in facts:
            put(f"{name}: {facts[name]}")
