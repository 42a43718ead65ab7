"""Vector files that nothing was tuned on are trained, counted, read, generated, and spoilt."""

import functools
import importlib
import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import jaxmeta
from experiments import _record
from experiments._trained import sentences
from jaxmeta import Corpus, Recipe
from jaxmeta.evaluate import SIMILARITY, WordPairs, load
from jaxmeta.files import Cache, Vectors
from jaxmeta.text import lower_words, whitespace

PRETRAINED = {
    "GoogleNews": "vectors/googlenews-26k-300d.bin",
    "GloVe": "vectors/glove-100d-56k.txt.gz",
    "MiniLM": "vectors/minilm-input-22k-384d.npz",
}
CORPORA = {
    "wiki": Corpus("corpora/wiki.zip", tokenise=whitespace),
    "news": Corpus("corpora/news.txt.gz", tokenise=lower_words, lines_are_documents=True),
    "reviews": Corpus("corpora/reviews.txt.gz", tokenise=lower_words, lines_are_documents=True),
}
TRAINED: dict[str, dict[str, Any]] = {
    "wiki SGNS": {"sg": 1, "vector_size": 300},
    "wiki CBOW": {"sg": 0, "vector_size": 100},
    "wiki FastText": {"sg": 1, "vector_size": 100, "bucket": 200_000},
    "news SGNS": {"sg": 1, "vector_size": 50},
    "news CBOW": {"sg": 0, "vector_size": 200},
    "news FastText": {"sg": 0, "vector_size": 150, "bucket": 200_000},
    "reviews SGNS": {"sg": 1, "vector_size": 200},
    "reviews CBOW": {"sg": 0, "vector_size": 300},
    "reviews FastText": {"sg": 1, "vector_size": 50, "bucket": 200_000},
}
"""Settings of gensim's Word2Vec, or of its FastText where there is a bucket."""
COUNTED: dict[str, Callable[..., Any]] = {
    "wiki log counts": jaxmeta.log_count,
    "news PMI": functools.partial(jaxmeta.shifted_pmi, shift=3.0),
    "reviews PPMI": jaxmeta.ppmi,
}
"""Signals of `build_sources`: those of GloVe, SGNS and LSA."""
MORE = "vectors/more"


@dataclass(frozen=True)
class Config:
    """What is trained, and what is combined."""

    trained: tuple[str, ...] = tuple(TRAINED)
    tokens: int = 4_000_000
    """Of each corpus, for trained files; counted ones are of all of it."""
    epochs: int = 3
    vocabulary: int = 30_000
    counted: int = 15_000
    """Words of counted files."""
    min_count: int = 5
    partners: tuple[str, ...] = ("GoogleNews", "news SGNS")
    """What noise, shuffled words and a copy are put beside."""
    triples: tuple[tuple[str, ...], ...] = (
        ("GoogleNews", "news SGNS", "reviews CBOW"),
        ("MiniLM", "wiki log counts", "reviews SGNS"),
        ("wiki CBOW", "news SGNS", "reviews PPMI"),
        ("GoogleNews", "news SGNS", "noise"),
        ("GoogleNews", "news SGNS", "shuffled"),
        ("GoogleNews", "news SGNS", "copy"),
    )
    words: int | None = None
    """Of generated files; None means that files are read and trained."""
    seed: int = 0
    draws: int = 100
    """Of the bootstrap."""


SMOKE = Config(
    partners=("first",),
    triples=(("first", "second", "noise"),),
    words=900,
    draws=50,
)


def read(config: Config) -> tuple[dict[str, Vectors], list[WordPairs]]:
    """Vectors by name, and the pairs of words to score them on."""
    if config.words is not None:
        files, pairs = _generated(config, config.words)
    else:
        files = _pretrained() | _trained(config) | _counted(config)
        pairs = [load(name) for name in SIMILARITY]
    rng = np.random.default_rng(config.seed)
    words, matrix = files[config.partners[0]]
    files["noise"] = Vectors(words, rng.standard_normal(matrix.shape).astype(np.float32))
    files["shuffled"] = Vectors(words, np.asarray(matrix)[rng.permutation(len(words))])
    files["copy"] = Vectors(words, matrix)
    return files, pairs


def _pretrained() -> dict[str, Vectors]:
    paths = dict(zip(PRETRAINED, _record.data(*PRETRAINED.values()), strict=True))
    more = Path(os.environ["JAXMETA_DATA"]) / MORE
    if more.is_dir():
        paths |= {path.name.partition(".")[0]: path for path in sorted(more.iterdir())}
    return {name: jaxmeta.read_vectors(path) for name, path in paths.items()}


def _corpus(name: str) -> Corpus:
    corpus = CORPORA[name]
    (path,) = _record.data(str(corpus.path))
    return Corpus(path, corpus.tokenise, corpus.lines_are_documents)


def train(config: Config, name: str) -> Vectors:
    """Vectors of one of `TRAINED`, by one thread, so that they are the same each time."""
    corpus = _corpus(name.split()[0])
    settings = {
        **TRAINED[name],
        "epochs": config.epochs,
        "min_count": config.min_count,
        "max_final_vocab": config.vocabulary,
        "seed": config.seed,
        "workers": 1,
    }
    key = {"text": [name.split()[0], Path(str(corpus.path)).stat().st_size, config.tokens]}

    def make() -> dict[str, np.ndarray]:
        models = importlib.import_module("gensim.models")
        model = models.FastText if "bucket" in settings else models.Word2Vec
        text = list(sentences(corpus, tokens=config.tokens))
        found = model(text, **settings).wv
        return {"words": np.array(found.index_to_key), "vectors": found.vectors}

    found = Cache(_record.ROOT / "results" / "cache").arrays("trained", key | settings, make)
    return Vectors(tuple(map(str, found["words"])), found["vectors"])


def _trained(config: Config) -> dict[str, Vectors]:
    progress = _record.Progress(len(config.trained))
    made = {}
    for name in config.trained:
        made[name] = train(config, name)
        progress.step(f"train {name}")
    return made


def _counted(config: Config) -> dict[str, Vectors]:
    sources = jaxmeta.build_sources(
        [Recipe(name, _corpus(name.split()[0]), signal) for name, signal in COUNTED.items()],
        size=config.counted,
        min_count=config.min_count,
        rule="paper",
        tolerance=1e-2,
        cache=_record.ROOT / "results" / "cache",
    )
    return {s.name: Vectors(s.words, np.asarray(s.embedding, np.float32)) for s in sources}


def _generated(config: Config, size: int) -> tuple[dict[str, Vectors], list[WordPairs]]:
    """Files of one truth: word forms are near their words, and words with odd endings are not."""
    rng = np.random.default_rng(config.seed)
    stems = ["".join(chr(97 + i // 26**p % 26) for p in range(4)) for i in range(size)]
    endings = ["".join(x) for x in itertools.product("bcdfg", repeat=3)]
    words = [*stems, *(w + "s" for w in stems)]
    words += [w + end for w, end in zip(stems, endings, strict=False)]
    truth = rng.standard_normal((len(words), 40))
    truth[size : 2 * size] = truth[:size] + 0.5 * truth[size : 2 * size]
    files = {}
    for name, width, noise in (("first", 80, 0.5), ("second", 20, 0.5), ("third", 40, 2.0)):
        seen = truth @ rng.standard_normal((40, width)) / 40**0.5
        rows = seen + noise * rng.standard_normal(seen.shape) + 1
        files[name] = Vectors(tuple(words), rows.astype(np.float32))
    a, b = rng.integers(len(words), size=(2, 3000))
    unit = truth / np.linalg.norm(truth, axis=1, keepdims=True)
    gold = np.einsum("ij,ij->i", unit[a], unit[b])
    first, second = (tuple(words[i] for i in x) for x in (a, b))
    return files, [WordPairs("generated", first, second, gold)]
