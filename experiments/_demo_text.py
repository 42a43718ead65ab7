"""The part of the demo that is about text: corpora of one generated language become sources.

All corpora are of one language, so that their signals have one ideal, which is known: that of the
expected counts. Losses are PIP losses against it, relative to the norm of its PIP matrix: 1 is the
loss of no embedding.
"""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from jaxmeta import several, similarity
from jaxmeta.text import Source, count_windows, given_vocabulary, symmetric_window

ALPHA = 0.5
# A pair that was never seen is stored as 0, what chance alone would do: no shift.
SIGNAL = partial(jaxmeta.shifted_pmi, shift=1.0)
NAMES = ("short", "middle", "long")
WEIGHTS = ("UW", "SW", "DW", "SW-blocks", "DW-blocks", "aligned")
ORACLE = "the best weights"
SINGLE, DENOISED = "longest corpus alone", "longest corpus, equalised"
AVERAGED, POOLED = "averaged", "all text as one, equalised"
TOGETHER = "side by side"
PLANS = ("default", "aligned")


@dataclass(frozen=True)
class Config:
    """What is drawn."""

    words: int = 300
    rank: int = 10
    """Of the model's vectors; so many leading values are compared."""
    strength: float = 0.4
    model_seed: int = 0
    tokens: tuple[int, ...] = (400_000, 800_000, 1_600_000)
    document: int = 400
    """Words of a document."""
    window: int = 2
    held_out: float = 0.2
    """Share of the words whose rows come after the plan."""
    change: float = 0.05
    """Share of the PIP norm that the plan may lose to fewer dimensions."""


class _Drawn(NamedTuple):
    """Sources of one draw of all corpora, and the truth; rows are in the order of the model."""

    sources: tuple[Source, ...]
    paper: tuple[Source, ...]
    pooled: Source
    signals: tuple[jax.Array, ...]
    unseen: tuple[float, ...]
    ideal: jax.Array
    words: tuple[str, ...]


@dataclass(frozen=True)
class Noise:
    """The noise of one source, and k."""

    draw: int
    source: str
    tokens: int
    unseen: float
    """Share of pairs that were never seen."""
    halves: float
    """Sigma from two halves, as the paper has it."""
    nested: float
    """Sigma from halves, quarters and eighths."""
    error: float
    """Its standard error."""
    noise: float
    """The truth: root mean square of observed minus ideal entries."""
    rank: int
    """Values above the edge of the noise."""
    paper: int
    equalised: int
    best: int
    """k by both rules, and that of the smallest loss."""
    paper_loss: float
    equalised_loss: float
    best_loss: float


@dataclass(frozen=True)
class Value:
    """A value of the first draw."""

    source: str
    i: int
    observed: float
    ideal: float
    estimated: float
    """NaN beyond the dimensions of the estimated ideal."""
    edge: float
    """Of the noise, 2 sigma sqrt n."""


@dataclass(frozen=True)
class Loss:
    """The loss of the first k dimensions of a source, of the first draw."""

    source: str
    k: int
    loss: float


@dataclass(frozen=True)
class Use:
    """What can be done with all sources."""

    draw: int
    name: str
    dimensions: int
    loss: float
    scaled: float
    """The loss when one number, the best there is, multiplies all inner products."""
    ratio: float
    scaled_ratio: float
    """Both to the loss of the best weights."""


@dataclass(frozen=True)
class Applied:
    """Rows of new words."""

    draw: int
    name: str
    dimensions: int
    alike: float
    """Unbiased CKA with the ideal: 1 for the same inner products up to mean and scale."""


@dataclass(frozen=True)
class Plan:
    """What was fitted."""

    draw: int
    method: str
    plan: str
    fitted: int
    applied: int
    """Words."""
    lost: float
    same: bool
    """Whether the plan gives the same numbers when it comes back from its file."""


class Found(NamedTuple):
    """Tables of one draw."""

    noises: list[Noise]
    values: list[Value]
    losses: list[Loss]
    uses: list[Use]
    applied: list[Applied]
    plans: list[Plan]


def run(config: Config, draw: int, out: Path) -> Found:
    """Draw all corpora once, and measure what comes of them; plans of the first are kept."""
    with jax.enable_x64(True), tempfile.TemporaryDirectory() as folder:
        drawn = _draw(config, draw, Path(folder))
        clean = jaxmeta.decompose(drawn.ideal)
        noises, values, losses = _noises(config, draw, drawn, clean)
        uses = _uses(draw, drawn, clean)
        kept = out if draw == 0 else Path(folder)
        applied, plans = _later(config, draw, drawn, clean, kept)
    if draw > 0:  # figures of values and losses show the first draw
        values, losses = [], []
    return Found(noises, values, losses, uses, applied, plans)


def _draw(config: Config, draw: int, folder: Path) -> _Drawn:
    """Corpora are written as files, and read as anyone would."""
    model = jaxmeta.text.latent_model(
        config.words, rank=config.rank, strength=config.strength, seed=config.model_seed
    )
    whole = folder / "all"
    whole.mkdir()
    recipes: list[jaxmeta.Recipe] = []
    for name, tokens in zip(NAMES, config.tokens, strict=True):
        size = {"tokens": tokens, "documents": tokens // config.document}
        text = jaxmeta.text.sample_tokens(model, **size, seed=len(NAMES) * draw + len(recipes) + 1)
        jaxmeta.text.write_corpus(folder / name, model, text)
        shutil.copy(folder / name, whole)
        corpus = jaxmeta.Corpus(folder / name, lines_are_documents=True)
        recipes.append(jaxmeta.Recipe(name, corpus, SIGNAL))
    pooled = jaxmeta.Recipe(POOLED, jaxmeta.Corpus(whole, lines_are_documents=True), SIGNAL)
    options: dict[str, Any] = {"size": None, "window": config.window, "alpha": ALPHA}
    options["cache"] = folder / "cache"  # a corpus is counted once for both rules
    sources = jaxmeta.build_sources(recipes, rule="equalised", **options)
    paper = jaxmeta.build_sources(recipes, rule="paper", **options)
    (of_all,) = jaxmeta.build_sources([pooled], rule="equalised", **options)
    counts = [
        symmetric_window(
            count_windows(recipe.corpus, given_vocabulary(model.words), window=config.window).whole
        )
        for recipe in recipes
    ]
    # PMI depends on the length of documents, and not on their number.
    expected = jaxmeta.text.expected_counts(
        model, tokens=2 * config.document, documents=2, window=config.window
    )
    return _Drawn(
        tuple(_in_order(source, model.words) for source in sources),
        paper,
        _in_order(of_all, model.words),
        tuple(jnp.asarray(SIGNAL(jnp.asarray(x.toarray(), float))) for x in counts),
        tuple(1 - x.nnz / config.words**2 for x in counts),
        jnp.asarray(SIGNAL(expected)),
        model.words,
    )


def _in_order(source: Source, words: Sequence[str]) -> Source:
    """The source with its rows in the order of these words; by itself it is by frequency."""
    place = {word: row for row, word in enumerate(source.words)}
    rows = np.array([place[word] for word in words])
    ideal = source.ideal
    assert ideal is not None  # by the rule "equalised"
    return source._replace(
        words=tuple(words),
        spectrum=source.spectrum._replace(vectors=source.spectrum.vectors[rows]),
        ideal=ideal._replace(vectors=ideal.vectors[rows]),
    )


def _noises(
    config: Config, draw: int, drawn: _Drawn, clean: jaxmeta.Spectrum
) -> tuple[list[Noise], list[Value], list[Loss]]:
    norm = float(jnp.linalg.norm(clean.values))  # of the PIP matrix, at alpha = ½
    noises, values, losses = [], [], []
    each = zip(drawn.sources, drawn.paper, drawn.signals, drawn.unseen, config.tokens, strict=True)
    for source, paper, signal, unseen, tokens in each:
        noisy = jaxmeta.decompose(signal)
        curve = np.asarray(jaxmeta.pip_curve(clean, noisy, alpha=ALPHA)) / norm
        assert source.noise is not None  # by the rule "equalised"
        assert source.ideal is not None
        best = 1 + int(np.argmin(curve))
        noises.append(
            Noise(
                draw, source.name, tokens, unseen,
                halves=paper.sigma,
                nested=source.sigma,
                error=float(source.noise.standard_error),
                noise=float(jnp.sqrt(jnp.mean((signal - drawn.ideal) ** 2))),
                rank=source.rank,
                paper=paper.k, equalised=source.k, best=best,
                paper_loss=float(curve[paper.k - 1]),
                equalised_loss=float(curve[source.k - 1]),
                best_loss=float(curve[best - 1]),
            )
        )  # fmt: skip
        estimated = np.full(config.words, np.nan)
        estimated[: len(source.ideal.values)] = source.ideal.values
        edge = 2 * source.sigma * config.words**0.5
        columns = zip(*map(np.asarray, (noisy.values, clean.values, estimated)), strict=True)
        values += [
            Value(source.name, i, float(found), float(true), float(guess), edge)
            for i, (found, true, guess) in enumerate(columns, 1)
        ]
        losses += [Loss(source.name, k, float(loss)) for k, loss in enumerate(curve, 1)]
    return noises, values, losses


def _uses(draw: int, drawn: _Drawn, clean: jaxmeta.Spectrum) -> list[Use]:
    """What is made of all sources, and how far from the ideal it is."""
    sources = drawn.sources
    embeddings = tuple(source.embedding for source in sources)
    observed = [source.observed for source in sources]
    target = jaxmeta.embed(clean, k=len(drawn.words), alpha=ALPHA)
    longest = sources[-1]
    ideal = jaxmeta.pip_quadratic(target, embeddings)
    made = {
        ORACLE: jaxmeta.concatenate(embeddings, jaxmeta.weightings.weigh("exact", observed, ideal))
    }
    made |= {SINGLE: longest.embedding}
    made |= {
        name: jaxmeta.concatenate(embeddings, jaxmeta.weightings.weigh(name, observed))
        for name in WEIGHTS
    }
    sigmas = [source.sigma for source in sources]
    made |= {
        AVERAGED: _averaged(drawn.signals, sigmas),
        DENOISED: longest.denoised,
        POOLED: drawn.pooled.denoised,
    }
    norm = float(jnp.linalg.norm(clean.values))
    found = {name: _losses(target, norm, embedding) for name, embedding in made.items()}
    best, _ = found[ORACLE]
    return [
        Use(draw, name, made[name].shape[1], loss, scaled, loss / best, scaled / best)
        for name, (loss, scaled) in found.items()
    ]


def _averaged(signals: Sequence[jax.Array], sigmas: Sequence[float]) -> jax.Array:
    """Signals averaged first, then decomposed, with weights that know what noise is left."""
    signal, sigma = several.average_signals(signals, sigmas)
    whole = jaxmeta.decompose(signal)
    weights = jaxmeta.shrinkage_weights(whole.values, sigma=sigma, n=len(signal), alpha=ALPHA)
    k = max(1, int(jnp.count_nonzero(weights)))
    return jaxmeta.embed(whole, k=k, alpha=ALPHA) * weights[None, :k]


def _losses(target: jax.Array, norm: float, embedding: jax.Array) -> tuple[float, float]:
    """The relative loss, as it is and at the best scale."""
    loss = float(jaxmeta.pip_loss(target, embedding))
    own = float(jnp.linalg.norm(embedding.T @ embedding))
    inner = (norm**2 + own**2 - loss**2) / 2
    return loss / norm, max(1 - (inner / (norm * own)) ** 2, 0) ** 0.5


def _later(
    config: Config, draw: int, drawn: _Drawn, clean: jaxmeta.Spectrum, folder: Path
) -> tuple[list[Applied], list[Plan]]:
    """Fit plans to rows of some words, keep them in files, and apply them to the other words."""
    n = config.words
    order = np.random.default_rng([config.model_seed, draw]).permutation(n)
    new, old = np.split(order, [round(config.held_out * n)])
    embeddings = [np.asarray(source.embedding) for source in drawn.sources]
    truth = jaxmeta.embed(clean, k=n, alpha=ALPHA)[new]

    def rows(which: np.ndarray) -> tuple[Any, ...]:
        return tuple(embedding[which] for embedding in embeddings)

    observed = tuple(source.observed for source in drawn.sources)
    later, again, plans = {}, {}, []
    for method in PLANS:
        settings = jaxmeta.Settings(k=config.change, observed=observed)
        plan = jaxmeta.fit(method, jaxmeta.moments(rows(old)), settings)
        path = folder / f"{method}.safetensors"
        jaxmeta.files.save_plan(path, plan, names=NAMES)
        kept = jaxmeta.files.load_plan(path, names=NAMES)
        later[planned(method)] = found = jaxmeta.apply(plan, rows(new))
        same = bool(jnp.array_equal(found, jaxmeta.apply(kept, rows(new))))
        plans.append(Plan(draw, method, str(plan), len(old), len(new), float(plan.lost), same))
        again[refitted(method)] = jaxmeta.apply(
            jaxmeta.fit(method, jaxmeta.moments(rows(order)), settings), rows(new)
        )
    made = dict(zip(NAMES, rows(new), strict=True)) | {TOGETHER: np.hstack(rows(new))}
    applied = [
        Applied(draw, name, x.shape[1], float(similarity.unbiased_cka(truth, jnp.asarray(x))))
        for name, x in (made | later | again).items()
    ]
    return applied, plans


def planned(method: str) -> str:
    """New words by the plan of the others."""
    return f"plan: {method}"


def refitted(method: str) -> str:
    """New words by a plan that has seen them."""
    return f"{method}, of all words"
