"""Draw the figures of results/ again, from the tables that are kept there.

    python -m experiments.redraw                        all of them
    python -m experiments.redraw table2 real_noise      those of some folders

Nothing is run, and where the tables come from stays as it is recorded. Figures without a table
(`diagnosis` in `pretrained`, and those of `theory`) are not drawn.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from experiments import (
    _record,
    _scoring,
    autoencoder_dimensions,
    corpus_to_sources,
    downstream,
    effect_of_alpha,
    equalised_sources,
    known_ideal,
    pip_dimension,
    pretrained,
    real_noise,
    real_weights,
    released_weights,
    sentences,
    spectrum_and_k,
    table1,
    table2,
    table3,
    tsne,
    unseen_pairs,
    weights_vs_oracle,
)

FIGURES: dict[str, tuple[Sequence[str], Mapping[str, Callable[..., None]]]] = {
    "autoencoder_dimensions": (("rows",), autoencoder_dimensions.FIGURES),
    "corpus_to_sources": (("rows", "curves"), corpus_to_sources.FIGURES),
    "downstream": (("rows", "differences", "times"), downstream.FIGURES),
    "effect_of_alpha": (("rows",), effect_of_alpha.FIGURES),
    "equalised_sources": (
        ("noise", "k", "weights", "curves", "bulk"),
        equalised_sources.FIGURES,
    ),
    "known_ideal": (("rows", "losses"), known_ideal.FIGURES),
    "pip_dimension": (("rows", "curves"), pip_dimension.FIGURES),
    "pretrained": (("rows",), pretrained.FIGURES),
    "real_noise": (("noise", "rows"), real_noise.FIGURES),
    "released_weights": (("rows",), released_weights.FIGURES),
    "sentences": (("rows",), sentences.FIGURES),
    "spectrum_and_k": (("rows",), spectrum_and_k.FIGURES),
    "tsne": (("rows", "points"), tsne.FIGURES),
    "unseen_pairs": (("rows", "signs"), unseen_pairs.FIGURES),
    "weights_vs_oracle": (("rows", "debiased"), weights_vs_oracle.FIGURES),
}
"""Experiments to the names of their tables, and to figures of all of these."""
SCORED: dict[str, Sequence[_scoring.Cell]] = {
    "real_weights": real_weights.COLUMNS,
    "table1": [*table1.CELLS.values(), *table1.OTHERS],
    "table2": [*table2.CELLS.values(), *table2.OTHERS],
    "table3": list(table3.CELLS.values()),
}
"""Experiments that have a figure for each of their settings, and its panels."""


def experiment(folder: str) -> str | None:
    """What wrote a folder: the name that it begins with, as that of `real_noise_10000`."""
    names = (*FIGURES, *SCORED)
    return next((name for name in names if folder == name or folder.startswith(f"{name}_")), None)


def redraw(folder: Path) -> list[Path]:
    """Draw the figures of a folder; their files."""
    name = experiment(folder.name)
    if name is None:
        known = ", ".join((*FIGURES, *SCORED))
        sys.exit(f"{folder.name}: got the folder of no known experiment, expected one of {known}.")
    names, figures = FIGURES.get(name, (("rows", "best"), {}))
    tables = [_record.read_table(folder / f"{table}.csv") for table in names]
    if name in SCORED:
        figures = _scoring.figures(_record.unique(tables[0], "setting"), SCORED[name])
    paths = [folder / f"{figure}.png" for figure in figures]
    for plot, path in zip(figures.values(), paths, strict=True):
        plot(*tables, path)
    return paths


def main(arguments: Sequence[str] | None = None, root: Path = _record.ROOT) -> None:
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", nargs="*", help="below results/; if none, all that are known")
    asked = parser.parse_args(arguments).folders
    every = (path.name for path in (root / "results").glob("*/"))
    for name in asked or sorted(filter(experiment, every)):
        for path in redraw(root / "results" / name):
            print(path.relative_to(root))


if __name__ == "__main__":
    main()
