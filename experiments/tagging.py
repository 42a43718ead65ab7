r"""How a tagger is trained, and what that does to the PoS column of Table 1 (section 4.1).

    python -m experiments.tagging             CoNLL-2000, the sources of Table 1: some hours
    python -m experiments.tagging --smoke     generated text and tags, in a minute

The paper says of its tagger that it is an LSTM whose vectors are the embeddings, and no more. Two
ways of training it are compared: that of `jaxmeta.evaluate.tagging` (Adam at a rate of .01 that
falls to 0, 6 epochs, 16 rows of sentences a step; vectors as long as $\sqrt k$ in the mean; words
without one share one, which is learnt), and that of the code which the paper uses,
`released_tagging` (SGD at .1, 10 epochs, a sentence a step in the order of the file; vectors as
they are; each word without one has its own, drawn from $[0, 1)^k$ and of about the length
$\sqrt{k/3}$). In both the LSTM has 100 units, and vectors stay what they are.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import _embeddings, _record, _scoring, corpus_to_sources, table1

WAYS = {"tagging": "", "released_tagging": " released"}
"""Functions of `jaxmeta.evaluate`, and how the names of their tasks end."""


@dataclass(frozen=True)
class Config:
    """Sources, methods and ways of training."""

    sources: corpus_to_sources.Config
    methods: tuple[str, ...] = table1.METHODS
    text: str = "CoNLL-2000"
    seed: int = 0
    """Of the split that gives the noise, and of training."""
    draws: int = 2000


FULL = Config(table1.FULL.sources)
SMOKE = Config(table1.SMOKE.sources, draws=50)


def run(config: Config, cache: Path) -> tuple[list[_scoring.Row], list[_scoring.Best]]:
    """Sources and methods, both ways."""
    names = [config.text + end for end in WAYS.values()]
    data = _scoring.tasks(names, corpus_to_sources.model(config.sources))
    own = dataclasses.replace(config.sources, seed=config.seed)
    sources = corpus_to_sources.sources(own, cache)
    embeddings = {
        **_embeddings.single(sources),
        **_embeddings.methods(sources, config.methods),
    }
    words, seed = sources[0].words, config.seed
    return _scoring.score(
        embeddings, words, data, setting=table1.SETTING, seed=seed, draws=config.draws
    )


def table(rows: Sequence[Mapping[str, Any]], _: Any) -> str:
    """Accuracies with their intervals, differences to unweighted concatenation, and the paper's."""
    tasks = _record.unique(rows, "task")
    lines = []
    for method in _record.unique(rows, "method"):
        cells = []
        for task in tasks:
            (row,) = (r for r in rows if (r["method"], r["task"]) == (method, task))
            value, low, high = (f"{100 * row[x]:.2f}" for x in ("value", "low", "high"))
            cells += [f"{value} ({low} to {high})", f"{100 * row['difference']:+.2f}"]
        printed = table1.PRINTED[table1.SETTING, method, "PoS"]
        apart = printed - table1.PRINTED[table1.SETTING, "UW", "PoS"]
        lines.append((method, *cells, f"{printed:.2f}", f"{apart:+.2f}"))
    heads = (head for task in (*tasks, "the paper") for head in (task, "over UW"))
    return _record.markdown(("", *heads), lines)


def report(config: Config, out: Path) -> list[_scoring.Row]:
    """Run, write and print."""
    started = time.time()
    rows, best = run(config, out.parent / "cache")
    texts = {"table": table}
    _record.publish(out, config, {"rows": rows, "best": best}, started=started, texts=texts)
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, FULL, SMOKE)
