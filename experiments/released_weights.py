r"""Printed and released weights: which of them gain, and which give the paper's order.

    python -m experiments.released_weights             from the rows of tables 1 to 3
    python -m experiments.released_weights --smoke     after smoke runs of tables 1 and 3

The paper prints $c_i = (\lambda_i/\mu_i)^\alpha$, which shrinks dimensions near the noise; its
released code computes the reciprocal, which lifts them. The paper reports that DW is first in every
column of its Tables 1 and 3. So for each version of DW, with the SW of the same version: in how
many columns is it first among the rows that the paper has, and in how many is it above unweighted
concatenation, there and in Table 2? Beside the versions stands unweighted concatenation at other
exponents, which flattens the spectrum and uses no weights at all. And as the paper's corpora are
not ours, its gains over UW are compared with ours, not its figures: which version has the same?

Nothing is computed but from results/table1, table2 and table3, which the scripts of these names
write.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments import _forest, _record, _scoring, table1, table2, table3

VERSIONS = {
    "as printed, own ideal": ("DW", "SW"),
    "as printed, blocks": ("DW, blocks", "SW, blocks"),
    "as released": ("DW as released", "SW as released"),
    "as released in 2020": ("DW as released in 2020", "SW as released"),
    "as released in 2021": ("DW as released in 2021", "SW as released in 2021"),
    "no weights, alpha ¼": ("UW, alpha 0.25", "SW"),
    "no weights, alpha 0": ("UW, alpha 0", "SW"),
}
"""DW of each version, and the SW that goes with it."""
RIVALS = {
    "table1": ("GloVe", "SGNS", "LSA", "UW", "AVG", "SVD"),
    "table2": ("GloVe", "SGNS", "LSA", "UW", "AVG", "SVD", "1TON", "LLE", *table3.TRAINED),
    "table3": ("UW", *table3.TRAINED),
}
"""Rows of the paper's tables beside SW and DW."""
CELLS = {"table1": table1.CELLS, "table2": table2.CELLS, "table3": table3.CELLS}
NAMES = {
    "table1": "Table 1",
    "table2": "Table 2",
    "table2, unit rows": "Table 2, unit rows",
    "table3": "Table 3",
    "table3, unit rows": "Table 3, unit rows",
}


@dataclass(frozen=True)
class Config:
    """Which tables are looked at."""

    tables: tuple[str, ...] = ("table1", "table2", "table3")


@dataclass(frozen=True)
class Row:
    """One version in one column of a table."""

    table: str
    setting: str
    task: str
    version: str
    value: float
    gain: float
    """Over unweighted concatenation."""
    low: float
    high: float
    """Of the gain, 95 %; over several seeds the widest."""
    first: bool
    """Whether it is above all other rows of the paper's table."""


def rows_of(table: str, rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """All versions in all columns of one table."""
    mean = _scoring.means(rows)
    found = []
    for setting in _record.unique(rows, "setting"):
        for task, cell in CELLS[table].items():
            own = [r for r in rows if r["setting"] == setting and (r["task"], r["metric"]) == cell]
            for version, (dw, sw) in VERSIONS.items():
                mine = [r for r in own if r["method"] == dw]
                if not mine:
                    continue
                value = mean[setting, dw, *cell]
                rivals = [mean[setting, name, *cell] for name in (*RIVALS[table], sw)]
                part = f"{table}, unit rows" if setting.endswith("unit rows") else table
                found.append(
                    Row(
                        part,
                        setting,
                        task,
                        version,
                        value,
                        value - mean[setting, "UW", *cell],
                        min(float(r["difference_low"]) for r in mine),
                        max(float(r["difference_high"]) for r in mine),
                        value > max(rivals),
                    )
                )
    return found


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Versions and tables: columns in which a version is first, in which it gains, and how much."""
    tables = [t for t in NAMES if any(row["table"] == t for row in rows)]
    heads = (f"{NAMES[t]}: first; above UW; mean gain" for t in tables)
    lines = []
    for version in _record.unique(rows, "version"):
        cells = []
        for t in tables:
            own = [r for r in rows if r["table"] == t and r["version"] == version]
            if not own:
                cells.append("")
                continue
            first = sum(str(r["first"]) == "True" for r in own)
            above = sum(float(r["gain"]) > 0 for r in own)
            gain = 100 * float(np.mean([r["gain"] for r in own]))
            cells.append(f"{first} of {len(own)}; {above} of {len(own)}; {gain:+.2f}")
        lines.append((version, *cells))
    return _record.markdown(("weights", *heads), lines)


def distances(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """How far the gains over UW of each version are from the paper's, in points, as Markdown."""
    printed = {
        "Table 1": ("table1", "", table1.PRINTED),
        "Table 3": ("table3", "", table3.PRINTED),
        "Table 3, unit rows": ("table3", ", unit rows", table3.PRINTED),
    }
    printed = {name: given for name, given in printed.items() if given[0] in tables}
    means = {table: _scoring.means(rows) for table, rows in tables.items()}
    lines = []
    for version, (dw, sw) in VERSIONS.items():
        if dw.startswith("UW"):
            continue
        cells = []
        for table, end, figures in printed.values():
            found = []
            for method, ours in (("DW", dw), ("SW", sw)):
                apart = [
                    100 * _gain(means[table], f"{setting}{end}", ours, CELLS[table][task])
                    - (value - figures[setting, "UW", task])
                    for (setting, name, task), value in figures.items()
                    if name == method
                ]
                found.append(f"{np.mean(np.abs(apart)):.2f}")
            cells.append("; ".join(found))
        lines.append((version, *cells))
    return _record.markdown(("weights", *(f"{name}: DW; SW" for name in printed)), lines)


def _gain(mean: Mapping[Any, float], setting: str, method: str, cell: _scoring.Cell) -> float:
    return mean[setting, method, *cell] - mean[setting, "UW", *cell]


def plot(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Gains over unweighted concatenation: a panel for each table, a dot for each of its columns.

    Beside each version stands in how many columns it is first.
    """
    tables = [t for t in NAMES if any(row["table"] == t for row in rows)]
    versions = _record.unique(rows, "version")
    ends = _forest.limits(100 * row["gain"] for row in rows)
    size = 2.4 + 2.6 * len(tables), 1.6 + 0.6 * len(versions)
    shared = {"sharex": True, "sharey": True}
    with _record.drawing(path, 1, len(tables), size=size, dpi=110, **shared) as (figure, grid):
        for axes, table in zip(grid[0], tables, strict=True):
            for y, version in enumerate(versions):
                own = [r for r in rows if (r["table"], r["version"]) == (table, version)]
                for up, row in zip(np.linspace(-0.32, 0.32, len(own)), own, strict=True):
                    one = _forest.points(row["gain"], row["low"], row["high"])
                    _forest.draw(axes, y + up, one, ends, interval=False)
                first = sum(str(row["first"]) == "True" for row in own)
                beside = f"{first} of {len(own)}" if own else "not\nscored"
                place = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 9}
                axes.text(1.02, y, beside, **place)
                if y % 2:
                    axes.axhspan(y - 0.5, y + 0.5, color="black", alpha=0.04, lw=0)
            axes.text(1.02, -0.62, "first in", **place)
            axes.set_title(NAMES[table], fontsize=11)
            axes.axvline(0, color="black", lw=0.8)
        grid[0][0].set_yticks(range(len(versions)), versions)
        grid[0][0].set(xlim=ends, ylim=(len(versions) - 0.5, -0.5))
        figure.suptitle(_shares(rows), fontsize=12)
        beyond = any(not ends[0] <= 100 * row["gain"] <= ends[1] for row in rows)
        handles = _forest.legend(beyond=beyond, reference="UW")
        _record.below(
            figure, "points above UW, a dot for each column of the paper's table", handles
        )


def _shares(rows: Sequence[Mapping[str, Any]]) -> str:
    """In what share of all columns each kind of version is above UW."""
    shares = []
    for kind in ("as printed", "as released", "no weights"):
        gains = [row["gain"] > 0 for row in rows if str(row["version"]).startswith(kind)]
        shares.append(f"{100 * np.mean(gains):.0f} %")
    return (
        f"Weights as printed are above UW in {shares[0]} of columns, as released in {shares[1]}, "
        f"and a flatter spectrum without weights in {shares[2]}"
    )


FIGURES = {"gains": plot}


def report(config: Config, out: Path, results: Path) -> list[Row]:
    """Read the tables in `results`, write and print."""
    started = time.time()
    tables, found = {}, []
    for table in config.tables:
        path = results / table / "rows.csv"
        if not path.exists():
            sys.exit(f"{path}: not there; run python -m experiments.{table} first.")
        tables[table] = _record.read_table(path)
        found += rows_of(table, tables[table])
    _record.publish(
        out,
        config,
        {"rows": found},
        started=started,
        texts={"table": summary, "distances": lambda _: distances(tables)},
        figures=FIGURES,
        dtype="none",
    )
    return found


def smoke_or_full(config: Config | None, out: Path) -> None:
    """A smoke run, of no config, makes its own tables."""
    if config is not None:
        report(config, out, _record.ROOT / "results")
        return
    table1.report(table1.SMOKE, out / "table1")
    table3.report(table3.SMOKE, out / "table3")
    report(Config(("table1", "table3")), out, out)


if __name__ == "__main__":
    _record.main(__doc__, smoke_or_full, Config(), None)
