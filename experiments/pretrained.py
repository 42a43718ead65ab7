r"""Vector files of unknown origin: what to do before they are concatenated, without any label.

    python -m experiments.pretrained            GoogleNews, GloVe and MiniLM, pairs and all
    python -m experiments.pretrained --smoke    generated files, in seconds

Each combination is scored on the seven sets of word similarity, on the words that its files share:
single files, concatenation as it is and with rows of length 1, the library's default
(`standardise`, then `rank_weights`), and what else was tried on the way to it: steps left out,
other weights, other exponents. The mean over the sets decides nothing here: the default follows
from a model (`jaxmeta/prepare.py`), and this is how it fares. For GoogleNews and GloVe as they are,
the figure of `diagnose` shows why stacking makes things worse.
"""

import itertools
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments import _forest, _record
from experiments._scoring import mean_difference
from jaxmeta.evaluate import SIMILARITY, WordPairs, evaluate, similarity

FILES = {
    "GoogleNews": "vectors/googlenews-26k-300d.bin",
    "GloVe": "vectors/glove-100d-56k.txt.gz",
    "MiniLM": "vectors/minilm-input-22k-384d.npz",
}


@dataclass(frozen=True)
class Config:
    """What is combined."""

    files: tuple[str, ...] = tuple(FILES)
    words: int | None = None
    """Of generated files; None means that files are read."""
    seed: int = 0
    draws: int = 2000
    """Of the bootstrap."""


SMOKE = Config(files=("wide", "long", "narrow"), words=400, draws=100)


@dataclass(frozen=True)
class Row:
    """One combination of files by one method."""

    files: str
    method: str
    words: int
    dimensions: int
    mean: float
    """Of Spearman's correlations over the sets."""
    worst_coverage: float
    scores: str
    """One for each set, times 100."""
    difference: float
    low: float
    high: float
    """To the best single file, pairs of all sets together, with a 95 % bootstrap interval of the
    mean over sets."""


def _standard(exponent: float) -> Callable[[Any], Any]:
    def prepare(source: Any) -> Any:
        centred = jaxmeta.prepare.centre_rows(jaxmeta.prepare.unit_rows(source))
        return jaxmeta.prepare.unit_frobenius(
            jaxmeta.prepare.spectrum_power(centred, exponent=exponent)
        )

    return prepare


def _unit_pip(source: Any) -> Any:
    """At unit norm of the PIP matrix: inner products of equal variance."""
    ready = _standard(0.75)(source)
    return ready / jnp.linalg.norm(ready.T @ ready) ** 0.5


def _equal(sources: Any) -> Any:
    return jnp.ones(len(sources), sources[0].dtype)


VARIANTS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "default": (jaxmeta.standardise, jaxmeta.weights.rank_weights),
    "as they are": (lambda e: e, _equal),
    "unit rows": (jaxmeta.prepare.unit_rows, _equal),
    "unit Frobenius norm": (jaxmeta.prepare.unit_frobenius, _equal),
    "unit spectral norm": (jaxmeta.prepare.unit_spectral, _equal),
    "default, equal weights": (jaxmeta.standardise, _equal),
    "default, weights by agreement": (jaxmeta.standardise, jaxmeta.quadratic.agreement_weights),
    "default, exponent 1": (_standard(1.0), jaxmeta.weights.rank_weights),
    "default, exponent .75": (_standard(0.75), jaxmeta.weights.rank_weights),
    "default, exponent .25": (_standard(0.25), jaxmeta.weights.rank_weights),
    "unit PIP norm, exponent .75": (_unit_pip, jaxmeta.weights.rank_weights),
    "default without 2 leading directions": (
        lambda e: jaxmeta.standardise(
            jaxmeta.prepare.remove_leading(
                jaxmeta.prepare.centre_rows(jaxmeta.prepare.unit_rows(e)), count=2
            )
        ),
        jaxmeta.weights.rank_weights,
    ),
}
"""How a source is prepared, and how prepared sources are weighted."""


def read(config: Config) -> tuple[dict[str, Any], list[WordPairs] | None]:
    """Vectors by name; for generated files the pairs to score them on too."""
    if config.words is None:
        paths = _record.data(*(FILES[name] for name in config.files))
        bar = jaxmeta.ProgressBar()
        read = jaxmeta.read_vectors
        return {n: read(p, progress=bar) for n, p in zip(config.files, paths, strict=True)}, None
    rng = np.random.default_rng(config.seed)
    truth = rng.standard_normal((config.words, 40)).astype(np.float32)
    words = tuple(f"w{i}" for i in range(config.words))
    made = {}
    for name, width, length in (("wide", 60, 1.0), ("long", 20, 6.0), ("narrow", 10, 2.0)):
        seen = truth @ rng.standard_normal((40, width)).astype(np.float32) / 40**0.5
        noise = 0.5 * rng.standard_normal(seen.shape).astype(np.float32)
        made[name] = (words, length * (seen + noise + 1))
    with tempfile.TemporaryDirectory() as folder:
        for name, vectors in made.items():
            jaxmeta.write_vectors(Path(folder) / f"{name}.txt", vectors)
        files = {name: jaxmeta.read_vectors(Path(folder) / f"{name}.txt") for name in made}
    a, b = rng.integers(config.words, size=(2, 3000))
    unit = truth / np.linalg.norm(truth, axis=1, keepdims=True)
    gold = np.einsum("ij,ij->i", unit[a], unit[b]).astype(np.float64)
    first, second = (tuple(words[i] for i in x) for x in (a, b))
    return files, [WordPairs("generated", first, second, gold)]


def run(config: Config, files: dict[str, Any], pairs: list[WordPairs] | None) -> list[Row]:
    """All combinations by all variants."""

    def scores(words: tuple[str, ...], matrix: Any) -> Any:
        vectors = (words, np.asarray(matrix))
        if pairs is None:
            return evaluate(vectors, SIMILARITY)
        return [similarity(vectors, each) for each in pairs]

    rows = []
    groups = [g for size in (2, 3) for g in itertools.combinations(config.files, size)]
    progress = _record.Progress(len(groups) * (len(VARIANTS) + 1))
    for group in groups:
        aligned = jaxmeta.align([files[name] for name in group], names=group)
        single = {
            name: (source, scores(aligned.words, source))
            for name, source in zip(group, aligned.sources, strict=True)
        }
        progress.step(f"{' + '.join(group)}: single files")
        best = max((found for _, found in single.values()), key=mean)
        for name, (source, found) in single.items():
            rows.append(row(config, group, name, source, found, best))
        for variant, (prepare, weigh) in VARIANTS.items():
            ready = tuple(prepare(source) for source in aligned.sources)
            made = jaxmeta.concatenate(ready, weigh(ready))
            rows.append(row(config, group, variant, made, scores(aligned.words, made), best))
            progress.step(f"{' + '.join(group)}: {variant}")
    return rows


def mean(scores: Any) -> float:
    """Of the values."""
    return float(np.mean([score.value for score in scores]))


def row(
    config: Config, group: tuple[str, ...], name: str, matrix: Any, scores: Any, best: Any
) -> Row:
    """Scores beside those of the best single file."""
    difference, low, high = mean_difference(scores, best, seed=config.seed, draws=config.draws)
    return Row(
        files=" + ".join(group),
        method=name,
        words=matrix.shape[0],
        dimensions=matrix.shape[1],
        mean=mean(scores),
        worst_coverage=min(score.covered / score.total for score in scores),
        scores=" ".join(f"{100 * score.value:.1f}" for score in scores),
        difference=difference,
        low=low,
        high=high,
    )


def table(rows: list[dict[str, Any]]) -> str:
    """Means as Markdown: a row for each method, a column for each set of files."""
    groups = _record.unique(rows, "files")
    methods = sorted(_record.unique(rows, "method"), key=VARIANTS.__contains__)
    found = {(row["method"], row["files"]): row for row in rows}
    lines = []
    for method in methods:
        own = (found.get((method, group)) for group in groups)
        lines.append((method, *("" if one is None else f"{100 * one['mean']:.2f}" for one in own)))
    return _record.markdown(("", *groups), lines)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Differences to the best single file, with intervals."""
    panels = {
        group.replace(" + ", "\n+ "): {
            method: _forest.points(
                *(found[group, method][x] for x in ("difference", "low", "high"))
            )
            for method in VARIANTS
        }
        for found in [{(row["files"], row["method"]): row for row in rows}]
        for group in _record.unique(rows, "files")
    }
    reference = "the best file"
    _forest.forest(
        path,
        panels,
        ends=_forest.limits_of(panels),
        title=f"Files together: {_forest.verdict(panels, reference, 'combinations')}",
        reference=reference,
    )


FIGURES = {"differences": plot}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write rows, provenance, table and figures."""
    started = time.time()
    files, pairs = read(config)
    rows = run(config, files, pairs)
    first = config.files[:2]
    aligned = jaxmeta.align([files[name] for name in first], names=first)
    found = jaxmeta.diagnose(aligned.sources, names=first, words=aligned.words)
    jaxmeta.plot_diagnosis(found, out / "diagnosis.png")
    _record.write_text(out / "diagnosis.txt", found.report())
    exponents = []
    for name, vectors in files.items():
        rows_of_one = jaxmeta.prepare.unit_rows(jnp.asarray(vectors.matrix, jnp.float32))
        values = jaxmeta.spectrum_of(jaxmeta.prepare.centre_rows(rows_of_one), alpha=1.0).values
        exponents.append(f"{name} {float(jaxmeta.prepare.balanced_exponent(values)):.2f}")
    print(f"balanced exponents: {', '.join(exponents)}\n{found.verdict}")
    _record.publish(
        out,
        config,
        {"rows": rows},
        started=started,
        texts={"table": table},
        figures=FIGURES,
        dtype="float32",
    )
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, Config(), SMOKE)
