"""What experiments share: data, tables, figures and where they come from, and the command line."""

import argparse
import csv
import dataclasses
import datetime
import importlib.metadata
import itertools
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax
import matplotlib
import numpy as np
from matplotlib.figure import Figure

from jaxmeta.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
# What readers see; docs/tried.md is made of results by tests/attack, as a whole.
PAGES = (
    "README.md",
    "paper_notes.md",
    *sorted(
        page.relative_to(ROOT).as_posix()
        for page in (ROOT / "docs").rglob("*.md")
        if page.name != "tried.md"
    ),
)
GENERATED = "generated data in small sizes: its numbers say nothing about real text and files"

# Okabe and Ito's palette: distinct to colour-blind readers too.
GREY, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#999999", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
STYLE: Any = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


def write_table(path: Path, rows: Sequence[Any]) -> None:
    """Rows, dataclasses of one kind, as CSV."""
    with write_whole(path) as part, part.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(rows[0])])
        writer.writeheader()
        writer.writerows(vars(row) for row in rows)


def read_table(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV, with numbers where they are numbers."""
    with path.open(newline="") as file:
        return [{name: _number(x) for name, x in row.items()} for row in csv.DictReader(file)]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def write_provenance(path: Path, config: Any, *, started: float, dtype: str) -> None:
    """Where a table comes from: commit, versions, device, dtype, settings with seeds, time."""
    packages = ("jax", "jaxlib", "numpy", "scipy", "optax", "matplotlib", "jaxmeta")
    record = {
        "experiment": path.parent.name,
        "command": " ".join(["python -m experiments." + Path(sys.argv[0]).stem, *sys.argv[1:]]),
        "commit": COMMIT,
        "uncommitted_changes": None if CHANGES is None else bool(CHANGES),
        "versions": {"python": platform.python_version()} | {p: _version(p) for p in packages},
        "device": [str(device.device_kind) for device in jax.devices()],
        "processors": os.cpu_count(),
        "dtype": dtype,
        "config": dataclasses.asdict(config),
        "started": datetime.datetime.fromtimestamp(started, datetime.UTC).isoformat("T", "seconds"),
        "seconds": round(time.time() - started, 1),
    }
    if "--smoke" in sys.argv:
        record["data"] = GENERATED
    with write_whole(path) as part:
        part.write_text(json.dumps(record, indent=2) + "\n")


def publish(
    out: Path,
    config: Any,
    tables: Mapping[str, Sequence[Any]],
    *,
    started: float,
    texts: Mapping[str, Callable[..., str]] | None = None,
    figures: Mapping[str, Callable[..., None]] | None = None,
    dtype: str | None = None,
) -> None:
    """Write tables, what is made of them, and where they come from.

    Texts and figures are functions of all tables, as read from their files; the path of a figure
    comes last. Texts are printed too.
    """
    for name, rows in tables.items():
        write_table(out / f"{name}.csv", rows)
    read = [read_table(out / f"{name}.csv") for name in tables]
    for name, make in (texts or {}).items():
        text = make(*read)
        write_text(out / f"{name}.md", text)
        print(f"{text}\n")
    for name, plot in (figures or {}).items():
        plot(*read, out / f"{name}.png")
    dtype = dtype or str(jax.numpy.zeros(()).dtype)
    write_provenance(out / "provenance.json", config, started=started, dtype=dtype)
    print(f"{time.time() - started:.0f} s; written to {out}")
    if "--smoke" in sys.argv:
        print(f"A smoke run, of {GENERATED}.")


@contextmanager
def drawing(
    path: Path,
    rows: int = 1,
    columns: int = 1,
    *,
    size: tuple[float, float],
    dpi: int = 130,
    **shared: Any,
) -> Iterator[tuple[Figure, np.ndarray]]:
    """A figure and its rows and columns of axes, saved if nothing goes wrong while it is drawn."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size)
        yield figure, figure.subplots(rows, columns, squeeze=False, **shared)
        with write_whole(path) as part:
            figure.savefig(part, dpi=dpi)


def below(figure: Figure, text: str, handles: Sequence[Any], columns: int = 4) -> None:
    """A legend below all panels, under what their horizontal axes have."""
    figure.legend(
        handles=handles, title=text, loc="outside lower center", ncols=columns, fontsize=9.5,
        title_fontsize=10.5, frameon=False,
    )  # fmt: skip


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return "\n".join((lines[0].replace("|  |", "| |"), "|---" * len(heads) + "|", *lines[1:]))


def show(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, the first column to the left and the others to the right."""
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *others in lines:
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        print("  ".join((first.ljust(widths[0]), *cells)))


def groups(rows: Iterable[Any], *names: str) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    """Rows, dataclasses, that follow one another and have the same under all of the names."""
    for key, own in itertools.groupby(rows, lambda row: tuple(getattr(row, x) for x in names)):
        yield key, list(own)


def unique(rows: Iterable[Mapping[str, Any]], *names: str) -> list[Any]:
    """What rows have under one name, or under several, in order and once each."""
    found = (tuple(row[name] for name in names) for row in rows)
    return list(dict.fromkeys(one if len(names) > 1 else one[0] for one in found))


def write_text(path: Path, text: str) -> None:
    """A text file, whole or not at all."""
    with write_whole(path) as part:
        part.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


# Of the start: a commit that is made while a run goes on made nothing of it, and what a run writes
# is no change of what made it.
COMMIT = _git("rev-parse", "HEAD")
CHANGES = _git("status", "--porcelain", "--", ".", ":(exclude)results")


def data(*names: str) -> list[Path]:
    """Files below the folder that JAXMETA_DATA names, or the end of the program."""
    folder = os.environ.get("JAXMETA_DATA")
    paths = [Path(folder or "") / name for name in names]
    missing = [name for name, path in zip(names, paths, strict=True) if not path.exists()]
    if folder is None or missing:
        sys.exit(
            f"JAXMETA_DATA: got {folder or 'nothing'}, expected a folder with "
            f"{', '.join(missing or names)}; point it there."
        )
    return paths


class Progress:
    """A count on stderr of what is done; into a file it is written at every tenth."""

    def __init__(self, total: int) -> None:
        """Count up to `total`."""
        self.total, self.done, self.start = total, 0, time.monotonic()

    def step(self, what: str) -> None:
        """One more is done."""
        self.done += 1
        seconds = time.monotonic() - self.start
        text = f"{self.done}/{self.total} {seconds:.0f} s  {what:<60}"
        if not sys.stderr.isatty():
            if 10 * self.done // self.total > 10 * (self.done - 1) // self.total:
                print(text.rstrip(), file=sys.stderr, flush=True)
            return
        end = "\n" if self.done == self.total else ""
        print(f"\r{text}", end=end, file=sys.stderr, flush=True)


def verdict(mean: float, worst: float, limit: float) -> str:
    """Whether a target is met by the worst case, by the mean alone, or not at all."""
    if worst <= limit:
        return "met"
    return "met by the mean, MISSED by the worst case" if mean <= limit else "MISSED"


def parser(description: str | None) -> argparse.ArgumentParser:
    """What every experiment can be asked for on the command line."""
    made = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    made.add_argument("--smoke", action="store_true", help="small sizes, in seconds")
    made.add_argument("--out", type=Path, help="folder to write to (results/...)")
    return made


def folder(asked: argparse.Namespace, name: str) -> Path:
    """Where the results of an experiment go."""
    return asked.out or ROOT / "results" / (f"{name}_smoke" if asked.smoke else name)


def main(
    description: str | None,
    report: Callable[[Any, Path], Any],
    full: Any,
    smoke: Any,
    **changes: Callable[[Any, int], Any],
) -> None:
    """Do as the command line of an experiment says.

    `changes` are options that take a number: each makes a configuration of another and of it, and
    results go to a folder that is named after the numbers, such as table2_20000.
    """
    made = parser(description)
    for name, change in changes.items():
        made.add_argument(f"--{name}", type=int, metavar="N", help=change.__doc__)
    asked = made.parse_args()
    config, name = smoke if asked.smoke else full, Path(sys.argv[0]).stem
    for option, change in changes.items():
        number = getattr(asked, option)
        if number is not None:
            config, name = change(config, number), f"{name}_{number}"
    report(config, folder(asked, name))


def words(config: Any, number: int) -> Any:
    """Size of the vocabulary."""
    return dataclasses.replace(config, sources=dataclasses.replace(config.sources, size=number))
