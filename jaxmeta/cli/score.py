"""`jaxmeta evaluate` scores files in tasks, and `jaxmeta data` says where the tasks are."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import jaxmeta as jm
from jaxmeta.cli.shared import (
    AsJson,
    Files,
    Seed,
    choices,
    progress,
    put,
    put_json,
    refuse,
    say,
    stems,
    table,
)

__all__ = ["data", "evaluate"]

Folder = Annotated[
    Path | None,
    typer.Option(envvar="JAXMETA_DATA", file_okay=False, help="Where data sets are."),
]


def evaluate(
    files: Files,
    task: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Tasks, all sets of word similarity if none are named; see `jaxmeta data`.",
            autocompletion=lambda: list(jm.evaluate.TASKS),
        ),
    ] = None,
    common: Annotated[
        bool, typer.Option("--common", help="Only words that all files have: scores compare.")
    ] = False,
    folder: Folder = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Score files of vectors in tasks, with 95 % intervals and how much of a task was covered."""
    tasks = choices("--task", task or jm.evaluate.SIMILARITY, jm.evaluate.TASKS, "jaxmeta data")
    for each in tasks:
        _require(jm.evaluate.TASKS[each][0], folder)
    found = [jm.read_vectors(path, progress=progress()) for path in files]
    words = jm.evaluate.common_words(*found) if common else None
    options: dict[str, Any] = {
        "vocabulary": words,
        "folder": folder,
        "seed": seed,
    }
    names = stems(files)
    scores = {
        name: jm.evaluate.evaluate(vectors, tasks, progress=progress(), **options)
        for name, vectors in zip(names, found, strict=True)
    }
    if as_json:
        fields = ("task", "metric", "value", "low", "high", "covered", "total")
        rows = [
            {"name": name, "file": path} | {field: getattr(score, field) for field in fields}
            for path, (name, each) in zip(files, scores.items(), strict=True)
            for score in each
        ]
        put_json({"common_words": words and len(words), "scores": rows})
        return
    if words is not None:
        say(f"on {len(words):,} words that all files have")
    table(("task", "metric", *names), _rows(list(scores.values())))


def _rows(scores: Sequence[Sequence[Any]]) -> list[list[str]]:
    rows = []
    for same in zip(*scores, strict=True):
        row = [same[0].task, same[0].metric]
        for each in same:
            value, low, high = (f"{100 * x:.1f}" for x in (each.value, each.low, each.high))
            row.append(f"{value} [{low}, {high}] on {each.covered:,} of {each.total:,}")
        rows.append(row)
    return rows


def _require(name: str, folder: Path | None) -> None:
    """Raise if there is no folder or not that data set in it, with how to get it."""
    if folder is None:
        do = "pass it, or set JAXMETA_DATA; `jaxmeta data` says how to fill it"
        refuse("--folder", "none, and no JAXMETA_DATA", f"the folder with {name}", do)
    if jm.evaluate.status(name, folder) == "missing":
        refuse("--folder", f"{folder}, without {name}", f"{name} there", _how(name))


def _how(name: str) -> str:
    """How to get a data set."""
    return jm.evaluate.DATASETS[name].manual or f"`jaxmeta data {name} --fetch` downloads it"


def data(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Data sets, all if none are named.",
            autocompletion=lambda: list(jm.evaluate.DATASETS),
        ),
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Download what is missing and has an address.")
    ] = False,
    folder: Folder = None,
    as_json: AsJson = False,
) -> int:
    """Which data sets are there, and how to get the others.

    With --fetch files are downloaded, and kept only if their checksum is right; then the exit code
    is 1 if a data set is still missing that was named.
    """
    sets = jm.evaluate.DATASETS
    wanted = choices("NAME", names, sets) if names else list(sets)
    if fetch:
        _fetch(wanted, folder)
    rows = []
    for name in wanted:
        there = "no folder" if folder is None else jm.evaluate.status(name, folder)
        tasks = [task for task, (own, _) in jm.evaluate.TASKS.items() if own == name]
        rows.append({
            "name": name,
            "status": there,
            "tasks": tasks,
            "files": [file.path for file in sets[name].files],
            "licence": sets[name].licence,
            "how": _how(name),
        })  # fmt: skip
    missing = [row for row in rows if row["status"] in ("missing", "no folder")]
    if as_json:
        put_json({"folder": folder, "data": rows})
    else:
        put(f"folder: {folder or 'none; pass --folder or set JAXMETA_DATA'}")
        put()
        table(
            ("data set", "status", "tasks", "licence"),
            [(r["name"], r["status"], ", ".join(r["tasks"]), r["licence"]) for r in rows],
        )
        for row in missing:
            put(f"\n{row['name']}: {row['how']}.")
    return int(bool(fetch and names and missing))


def _fetch(wanted: Sequence[str], folder: Path | None) -> None:
    if folder is None:
        do = f"pass one, such as data{os.sep}"
        refuse("--folder", "none, and no JAXMETA_DATA", "a folder to download to", do)
    show = progress()
    for done, name in enumerate(wanted, start=1):
        if any(file.address for file in jm.evaluate.DATASETS[name].files):
            jm.evaluate.fetch(name, folder)
        show("fetch", done / len(wanted))
