r"""Vector files that nothing was tuned on: what the default does for pairs of them, and why.

    python -m experiments.unseen_pairs            trained, counted and pretrained files, all pairs
    python -m experiments.unseen_pairs --smoke    generated files, in seconds

Word2vec and FastText are trained by gensim on three corpora (an optional extra; vectors are kept in
results/cache), `build_sources` makes three more files, and files in the folder `vectors/more` below
JAXMETA_DATA, if there are any, take part under their names. Noise, a file with its words shuffled
and a copy stand for files that have nothing to give. Pairs that `pretrained` has are left out.

Each pair is scored on the seven sets of word similarity over the words that its files share. What
may predict the outcome without a label is beside it: effective ranks, mean vectors, agreement, and
*word forms*. If a suffix, such as "s", extends many words of a file, pairs like "car" and "cars"
are related; pairs that a rare suffix tells apart, like "car" and "cargo", are spelled as much alike
by chance. In the model of the default, products of related words differ from those of others by
$\delta_j$, and vary by a covariance $C_{ij} = \|E_i^\top E_j\|_F^2$ over all pairs of words;
$q = c^2 \propto C^{-1}\delta$ tells them apart best. The default has $\delta_j = 1$ and the
diagonal of $C$. Weights by word forms measure $\delta$ instead, and all of $C$.

The rule was made on pairs of files of one half, and tried once on those of the other (`DEVELOP`).
"""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import jaxmeta
from experiments import _record
from experiments._scoring import mean_difference
from experiments._unseen_files import PRETRAINED, SMOKE, Config, read
from experiments._unseen_methods import combinations, covariance, differences, standard
from experiments._unseen_tables import apart, plot, prediction, spelling, summary, table
from jaxmeta.evaluate import Score, WordPairs, similarity
from jaxmeta.files import Vectors
from jaxmeta.prepare import unit_rows
from jaxmeta.spelling import WordForms, separation, word_forms

DEVELOP = frozenset(
    {*PRETRAINED, "wiki SGNS", "news CBOW", "reviews FastText", "news PMI", "first", "second"}
)
"""The half of the files that weights by word forms were made on, chosen before any was scored."""


@dataclass(frozen=True)
class Row:
    """One combination of files by one method."""

    files: str
    half: str
    """Where its files are from: "develop", "test", "both", or a file is "degenerate"."""
    method: str
    words: int
    mean: float
    """Of Spearman's correlations over the sets."""
    over_best: float
    low: float
    high: float
    """To the best single file, with a 95 % bootstrap interval of the mean over sets."""
    over_unit_rows: float
    unit_low: float
    unit_high: float
    """To rows of length 1; intervals are of the default alone."""


@dataclass(frozen=True)
class Sign:
    """What is known of one file beside others without a label."""

    files: str
    half: str
    file: str
    score: float
    """Alone, as it is."""
    effective_rank: float
    """Of the standardised file, to which the default's weights are proportional."""
    mean_vector: float
    """Length of the mean of its rows of length 1."""
    forms: float
    """What products of word forms are above others, in mean squared row norms, standardised."""
    chance: float
    """The same of pairs that are spelled as much alike by chance."""
    separation: float
    """Word forms less chance in cosines as they are, in standard deviations over all pairs."""
    agreement: float
    """Mean centred kernel alignment with the others, standardised."""


def groups(config: Config, names: Sequence[str]) -> list[tuple[str, ...]]:
    """All pairs but those that the default was looked at with, degenerate files, and triples."""
    degenerate = ("noise", "shuffled", "copy")
    own = [name for name in names if name not in degenerate]
    pairs = itertools.combinations(own, 2)
    new = [pair for pair in pairs if not set(pair) <= set(PRETRAINED)]
    beside = list(itertools.product(config.partners, ("noise", "shuffled")))
    beside.append((config.partners[0], "copy"))  # it is one of that file
    return [*new, *beside, *(x for x in config.triples if set(x) <= set(names))]


def half_of(group: Sequence[str]) -> str:
    """Where files are from."""
    if {"noise", "shuffled", "copy"} & set(group):
        return "degenerate"
    known = {name in DEVELOP for name in group}
    return "both" if len(known) > 1 else "develop" if known == {True} else "test"


def run(
    config: Config, files: Mapping[str, Vectors], pairs: Sequence[WordPairs]
) -> tuple[list[Row], list[Sign]]:
    """All combinations by all methods."""
    asked = {word for one in pairs for word in (*one.first, *one.second)}
    asked |= {word.lower() for word in asked}
    rows: list[Row] = []
    signs: list[Sign] = []
    every = groups(config, list(files))
    progress = _record.Progress(len(every))
    for group in every:
        aligned = jaxmeta.align([files[name] for name in group], names=group)
        sources = [np.asarray(source, np.float32) for source in aligned.sources]
        ready = [standard(source) for source in sources]
        forms = word_forms(aligned.words)
        # Scores need few of the rows.
        kept = np.flatnonzero([word in asked for word in aligned.words])
        words = tuple(aligned.words[i] for i in kept)
        found = {}
        for method, parts in combinations(sources, ready, forms, group).items():
            vectors = Vectors(words, np.concatenate([part[kept] for part in parts], axis=1))
            found[method] = [similarity(vectors, one) for one in pairs]
        rows += _rows(config, group, len(aligned.words), found)
        scores = {name: mean(found[name]) for name in group}
        signs += _signs(group, sources, ready, forms, scores)
        progress.step(" + ".join(group))
    return rows, signs


def mean(scores: Sequence[Score]) -> float:
    """Of the values."""
    return float(np.mean([score.value for score in scores]))


def _rows(
    config: Config, group: tuple[str, ...], words: int, found: Mapping[str, list[Score]]
) -> Iterator[Row]:
    best = max((found[name] for name in group), key=mean)
    for method, scores in found.items():
        over = _interval(config, scores, best)
        if method == "default":
            other = _interval(config, scores, found["unit rows"])
        else:
            other = (mean(scores) - mean(found["unit rows"]), np.nan, np.nan)
        yield Row(" + ".join(group), half_of(group), method, words, mean(scores), *over, *other)


def _interval(
    config: Config, scores: list[Score], other: list[Score]
) -> tuple[float, float, float]:
    if scores is other:
        return 0.0, 0.0, 0.0
    return mean_difference(scores, other, seed=config.seed, draws=config.draws)


def _signs(
    group: tuple[str, ...],
    sources: Sequence[np.ndarray],
    ready: Sequence[np.ndarray],
    forms: WordForms,
    scores: Mapping[str, float],
) -> Iterator[Sign]:
    products = covariance(ready)
    variances = np.diag(products)
    none = np.full(len(ready), np.nan)
    above, chance = differences(ready, forms) if forms.enough else (none, none)
    for j, name in enumerate(group):
        scale = np.sqrt(variances[j] * variances)
        agreement = np.delete(products[j] / scale, j)
        yield Sign(
            files=" + ".join(group),
            half=half_of(group),
            file=name,
            score=scores[name],
            effective_rank=float(1 / variances[j]),
            mean_vector=float(np.linalg.norm(np.mean(unit_rows(sources[j]), axis=0))),
            forms=float(above[j]),
            chance=float(chance[j]),
            separation=float(separation(sources[j], forms).difference),
            agreement=float(np.mean(agreement)),
        )


FIGURES = {"differences": plot}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write rows, provenance, tables and the figure."""
    started = time.time()
    files, pairs = read(config)
    rows, signs = run(config, files, pairs)
    _record.publish(
        out,
        config,
        {"rows": rows, "signs": signs},
        started=started,
        texts={
            "table": table,
            "summary": summary,
            "spelling": spelling,
            "apart": apart,
            "prediction": prediction,
        },
        figures=FIGURES,
        dtype="float32",
    )
    return rows


if __name__ == "__main__":
    _record.main(__doc__, report, Config(), SMOKE)
