r"""Words of praise and of blame in two dimensions, in sources and in their meta-embeddings.

    python -m experiments.tsne             the list below, in sources of the wiki corpus
    python -m experiments.tsne --words MPQA     words drawn from a data set, or from SentiWords
    python -m experiments.tsne --smoke     two planted classes of generated words, in seconds

The paper draws t-SNE of words from SentiWords for its sources and their concatenations, and lets
the eye judge. A picture by t-SNE may show groups that are not there and hide others that are. So
beside it stands what the vectors themselves say: how many words have a nearest neighbour of their
own class, and how many have most of their ten nearest in it, by cosine in the full space and among
the words of the list. Intervals are Clopper and Pearson's, 95 %, as if words were independent.

Rows get length 1 before t-SNE, so that the picture is about the same cosines; perplexity, start,
steps and seed are those of the released code. The words are a list of our own, frequent and plainly
positive or negative. The paper says that it draws words at random from SentiWords (its code takes
the most extreme): so are 100 of each class drawn here, from SentiWords where a user has it, or from
the phrases of MPQA that are one word with one opinion. Sources are those of
`experiments.corpus_to_sources`, and steps in results/cache are shared with it. Embeddings are
GloVe, SGNS, LSA, and their concatenations without weights (UW) and with dimension weights (DW).
"""

import dataclasses
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE  # type: ignore[import-untyped]

from experiments import _embeddings, _generated, _record, corpus_to_sources
from jaxmeta import Recipe
from jaxmeta.evaluate import (
    LabelledSentences,
    MissingData,
    RatedWords,
    load,
    proportion_interval,
)
from jaxmeta.text import LatentModel

POSITIVE = """
good great best better excellent beautiful happy joy love loved perfect brilliant success successful
win winner victory triumph glory hope peace freedom friend friendly kind loyal courage noble wise
wisdom pleasure enjoy enjoyed comfort safe healthy strong bright fresh pure praise praised admired
celebrated popular favorite benefit gift reward enthusiasm hero fame prosperity harmony attractive
impressive outstanding beauty valuable sweet
"""
NEGATIVE = """
bad worse worst poor terrible evil violent violence hate hatred anger angry fear terror pain painful
suffering disaster tragedy failure failed defeat defeated loss destroyed damage harm dangerous
danger threat crime criminal murder victim death disease sick illness weak corrupt corruption false
lie guilty abuse poison war enemy hostile poverty hunger famine wounded injury accident torture
fraud scandal chaos wrong
"""
RANK = 4  # of generated text
CLASSES = {"positive": (_record.BLUE, "o"), "negative": (_record.VERMILION, "^")}
NEIGHBOURS = {1: (_record.GREEN, "o"), 10: (_record.PURPLE, "s")}


@dataclass(frozen=True)
class Config:
    """Sources, and how they are drawn."""

    sources: corpus_to_sources.Config
    words: str = "own"
    """Where words are from: a list of our own, or drawn from one of `LISTS`."""
    drawn: int = 100
    """Words of each class, if they are drawn."""
    perplexity: float = 40.0
    steps: int = 2500
    seed: int = 23
    """Of t-SNE, and of what is drawn."""
    planted: int = 60
    """How many words of each class are drawn, if text is generated."""


FULL = Config(sources=corpus_to_sources.Config(size=10_000))
SMOKE = Config(sources=corpus_to_sources.SMOKE)


@dataclass(frozen=True)
class Row:
    """How well one embedding separates the classes."""

    embedding: str
    k: int
    words: int
    neighbours: int
    """Of each word that vote, itself left out."""
    right: int
    accuracy: float
    low: float
    high: float


@dataclass(frozen=True)
class Point:
    """A word in the picture of one embedding."""

    embedding: str
    word: str
    sentiment: str
    x: float
    y: float


def run(config: Config, cache: Path) -> tuple[list[Row], list[Point]]:
    """Build sources and concatenations, draw the words and count neighbours."""
    with tempfile.TemporaryDirectory() as folder:
        recipes, sentiment = material(config, Path(folder))
        sources = corpus_to_sources.build(config.sources, recipes, cache)
    index = {word: row for row, word in enumerate(sources[0].words)}
    if config.words in LISTS:
        sentiment = draw(sentiment, index, config)
    words = [word for word in sentiment if word in index]
    missing = [word for word in sentiment if word not in index]
    if missing:
        print(f"not among the {len(index):,} words: {', '.join(missing)}")
    positive = np.array([sentiment[word] == "positive" for word in words])
    chosen = np.array([index[word] for word in words])
    made = {**_embeddings.single(sources), **_embeddings.methods(sources, ("UW", "DW"))}
    rows, points = [], []
    for name, make in made.items():
        x = np.asarray(make(), np.float64)[chosen]
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        for neighbours in NEIGHBOURS:
            right = int(nearest(x, positive, neighbours).sum())
            interval = proportion_interval(right, len(x))
            share = right / len(x)
            rows.append(Row(name, x.shape[1], len(x), neighbours, right, share, *interval))
        how = {"perplexity": config.perplexity, "max_iter": config.steps}
        model = TSNE(**how, init="pca", random_state=config.seed)
        points += [
            Point(name, word, sentiment[word], float(a), float(b))
            for word, (a, b) in zip(words, model.fit_transform(x), strict=True)
        ]
    return rows, points


def material(config: Config, folder: Path) -> tuple[list[Recipe], dict[str, str]]:
    """Recipes of the sources, and words with their classes."""
    recipes = corpus_to_sources.recipes(config.sources, folder, rank=RANK)
    model = corpus_to_sources.model(config.sources, rank=RANK)
    if model is None and config.words in LISTS:
        try:
            return recipes, LISTS[config.words](load(config.words))
        except MissingData as error:
            sys.exit(str(error))
    if model is None:
        listed = dict.fromkeys(POSITIVE.split(), "positive")
        return recipes, listed | dict.fromkeys(NEGATIVE.split(), "negative")
    coordinate = latent_coordinate(model)
    planted: dict[str, str] = {}
    for sentiment, sign in (("positive", 1), ("negative", -1)):
        own = np.flatnonzero(sign * coordinate > 0)[: config.planted]  # the most frequent
        planted |= dict.fromkeys([model.words[i] for i in own], sentiment)
    return recipes, planted


def of_phrases(data: LabelledSentences) -> dict[str, str]:
    """Words that are a phrase by themselves, and of one class alone."""
    classes: dict[str, set[int]] = {}
    for sentence, label in zip(data.sentences, data.labels.tolist(), strict=True):
        if len(sentence) == 1:
            classes.setdefault(sentence[0], set()).add(label)
    return {
        word: "positive" if own == {1} else "negative"
        for word, own in classes.items()
        if len(own) == 1
    }


def of_ratings(data: RatedWords) -> dict[str, str]:
    """Words by the sign of their rating: as in the released code that of the last entry counts."""
    rated = dict(zip(data.words, data.scores.tolist(), strict=True))
    return {word: "positive" if x > 0 else "negative" for word, x in rated.items() if x}


LISTS: dict[str, Callable[[Any], dict[str, str]]] = {"MPQA": of_phrases, "SentiWords": of_ratings}
"""Data sets with words and their classes."""


def draw(sentiment: Mapping[str, str], known: Collection[str], config: Config) -> dict[str, str]:
    """As many words of each class as are asked for, of those with vectors, at random."""
    rng = np.random.default_rng(config.seed)
    drawn: dict[str, str] = {}
    for name in CLASSES:
        own = sorted(word for word, of in sentiment.items() if of == name and word in known)
        chosen = rng.choice(own, min(config.drawn, len(own)), replace=False)
        drawn |= dict.fromkeys(chosen.tolist(), name)
    return drawn


def latent_coordinate(model: LatentModel) -> np.ndarray:
    """Each word's place along the direction in which latent vectors differ most."""
    return np.linalg.eigh(_generated.products(model))[1][:, -1]


def nearest(x: np.ndarray, positive: np.ndarray, neighbours: int) -> np.ndarray:
    """Whether most of the nearest of each row, by inner products, are of its own class.

    The row itself is left out. Where both classes have as many, the nearest one decides.
    """
    products = x @ x.T
    np.fill_diagonal(products, -np.inf)
    order = np.argsort(-products, axis=1, kind="stable")[:, :neighbours]
    same = positive[order] == positive[:, None]
    return same.sum(axis=1) + np.where(same[:, 0], 0.25, -0.25) > neighbours / 2


def print_table(rows: Sequence[Row]) -> None:
    """Embeddings, one a line."""
    lines = []
    for name in dict.fromkeys(row.embedding for row in rows):
        own = [row for row in rows if row.embedding == name]
        cells = ((f"{r.accuracy:.1%}", f"{r.low:.1%} to {r.high:.1%}") for r in own)
        lines.append((name, f"{own[0].k:,}", *itertools.chain(*cells)))
    heads = ((f"{count}-NN", "95 %") for count in NEIGHBOURS)
    print()
    _record.show(("", "k", *itertools.chain(*heads)), lines)
    print(f"of {rows[0].words} words; by the nearest, and by most of the nearest ten")


def plot(rows: Sequence[dict], points: Sequence[dict], path: Path) -> None:
    """A panel for each embedding, and one with the shares of neighbours.

    What t-SNE draws may be turned as one likes: all pictures have positive words to the right.
    """
    names = _record.unique(rows, "embedding")
    nearest_one = {row["embedding"]: row for row in rows if row["neighbours"] == min(NEIGHBOURS)}
    with _record.drawing(path, 2, 3, size=(12, 8), dpi=110) as (figure, grid):
        *panels, last = grid.flat
        for axes, name in zip(panels, names, strict=True):
            own = [point for point in points if point["embedding"] == name]
            places, sentiments = turned(own), np.array([point["sentiment"] for point in own])
            for sentiment, (colour, marker) in CLASSES.items():
                style = {"color": colour, "marker": marker, "s": 34, "alpha": 0.8, "lw": 0}
                axes.scatter(*places[sentiments == sentiment].T, label=sentiment, **style)
            share = 100 * nearest_one[name]["accuracy"]
            title = f"{name}, k = {nearest_one[name]['k']:,.0f}: {share:.0f} % beside their own"
            axes.set_title(title, fontsize=11)
            axes.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
            axes.spines[:].set_visible(True)
            axes.spines[:].set_color(_record.GREY)
        for shift, (neighbours, (colour, marker)) in zip(
            (-0.12, 0.12), NEIGHBOURS.items(), strict=True
        ):
            own = [row for row in rows if row["neighbours"] == neighbours]
            share, low, high = (
                np.array([100 * row[field] for row in own]) for field in ("accuracy", "low", "high")
            )
            place, ends = np.arange(len(own)) + shift, [share - low, high - share]
            style = {"fmt": marker, "color": colour, "capsize": 3}
            last.errorbar(share, place, xerr=ends, **style, label=f"{neighbours} nearest")
        classes = [p["sentiment"] for p in points if p["embedding"] == names[0]]
        chance = 100 * max(map(classes.count, CLASSES)) / len(classes)
        last.axvline(chance, color=_record.GREY, ls="--", lw=1, label="the larger class")
        last.yaxis.tick_right()
        last.spines["right"].set_visible(True)
        last.spines["left"].set_visible(False)
        last.set_yticks(range(len(names)), names)
        last.invert_yaxis()
        last.set(xlabel="words whose neighbours are of their own class, %", xlim=(None, 100.5))
        last.set_title("counted in all dimensions, 95 % intervals", fontsize=11)
        handles = [x for axes in (panels[0], last) for x in axes.get_legend_handles_labels()[0]]
        _record.below(figure, "words, and how many of the nearest are asked", handles, len(handles))
        unweighted, weighted = (nearest_one[name] for name in ("UW", "DW"))
        figure.suptitle(
            "Every picture is turned so that positive words are to the right: the clearer the two "
            f"sides, the better.\nWith weights (DW) {weighted['right']:.0f} of "
            f"{weighted['words']:.0f} words are beside one of their own class, without (UW) "
            f"{unweighted['right']:.0f}",
            fontsize=12,
        )


def turned(points: Sequence[dict]) -> np.ndarray:
    """Places, centred and turned so that the mean of positive words is to the right."""
    places = np.array([[point["x"], point["y"]] for point in points])
    places -= places.mean(axis=0)
    positive = np.array([point["sentiment"] == "positive" for point in points])
    x, y = places[positive].mean(axis=0) - places[~positive].mean(axis=0)
    return places @ np.array([[x, -y], [y, x]]) / np.hypot(x, y)


FIGURES = {"tsne": plot}


def report(config: Config, out: Path) -> list[Row]:
    """Run, write tables, provenance and the figure into `out`, and print."""
    started = time.time()
    rows, points = run(config, out.parent / "cache")
    print_table(rows)
    _record.publish(out, config, {"rows": rows, "points": points}, started=started, figures=FIGURES)
    return rows


def main() -> None:
    """Do as the command line says."""
    parser = _record.parser(__doc__)
    parser.add_argument("--words", choices=LISTS, help="draw words from a data set")
    asked = parser.parse_args()
    config, name = SMOKE if asked.smoke else FULL, "tsne"
    if asked.words:
        config, name = dataclasses.replace(config, words=asked.words), f"tsne_{asked.words}"
    report(config, _record.folder(asked, name))


if __name__ == "__main__":
    main()
