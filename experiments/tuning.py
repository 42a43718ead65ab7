r"""Searches on MTurk-771 that the paper reports (section 4.1, and its appendix on hyperparameters).

    python -m experiments.tuning             all searches, in the wiki corpus: some hours
    python -m experiments.tuning --only window lle     some of them, to a folder of their own
    python -m experiments.tuning --smoke     generated text and pairs, in a minute

The paper tunes on MTurk-771 by Pearson's correlation: the window, $\beta$ of SGNS and $\alpha$ of
the sources; dimensions of SVD; neighbours and dimensions of LLE; dimensions and learning rate of
1TON; dimensions of AAEME, here for the 500 epochs that its code has unless told otherwise (the
paper says nothing of them). All else is as the paper has it. What is tried is what the paper says,
and where it says nothing (window, $\beta$, $\alpha$, SVD) values around its choice.

For each search the table has the best value, and whether what the paper chose is within the 95 %
interval of the score there. Intervals are those of one correlation; two values are scored on the
same pairs, so that a difference may be sure though intervals overlap. Sources and what is trained
are kept in results/cache: a full run after runs of some searches repeats none of them. How long a
search will take is said at its start: from its arithmetic, at the speed of a matrix product, or
from how long sources took in results/corpus_to_sources_10000. An idle machine needs that at least.
"""

import dataclasses
import functools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments import _embeddings, _record, _scoring, corpus_to_sources
from jaxmeta.evaluate import correlation_interval, similarity
from jaxmeta.text import Source

DEVELOPMENT = "MTurk-771"
PAPER = {
    "window": 5,
    "beta": 3,
    "alpha": 0.5,
    "SVD: dimensions": 200,
    "LLE: neighbours": 2000,
    "LLE: dimensions": 200,
    "1TON: dimensions": 300,
    "1TON: rate": 0.1,
    "AAEME: dimensions": 300,
}
"""What the paper chose."""


@dataclass(frozen=True)
class Config:
    """Sources, and what is tried."""

    sources: corpus_to_sources.Config
    windows: tuple[int, ...] = (1, 2, 3, 5, 7, 10)
    betas: tuple[float, ...] = (1, 2, 3, 5, 10, 15)
    alphas: tuple[float, ...] = (0, 0.25, 0.5, 0.75, 1)
    svd: tuple[int, ...] = (50, 100, 150, 200, 250, 300, 400, 500, 600, 700, 800)
    neighbours: tuple[int, ...] = (600, 1200, 2000)
    lle: tuple[int, ...] = (100, 200, 300, 400, 450, 500, 600, 750)
    one_to_n: tuple[int, ...] = (100, 200, 300, 400, 500, 600, 700, 800)
    rates: tuple[float, ...] = (0.001, 0.01, 0.1, 1, 10, 100, 1000)
    aaeme: tuple[int, ...] = (50, 100, 200, 300, 400, 500, 600)
    epochs: int = 500
    """Of AAEME."""
    seed: int = 0
    """Of what starts at random."""


FULL = Config(corpus_to_sources.Config(size=10_000))
SMOKE = Config(
    dataclasses.replace(corpus_to_sources.SMOKE, rule="spiked"),
    windows=(2, 5),
    betas=(1, 3),
    alphas=(0, 0.5),
    svd=(5, 10),
    neighbours=(20, 40),
    lle=(5, 10),
    one_to_n=(5, 10),
    rates=(0.01, 0.1),
    aaeme=(5, 10),
    epochs=2,
)


@dataclass(frozen=True)
class Row:
    """One value of one search."""

    search: str
    embedding: str
    value: float
    paper: bool
    """Whether the paper chose it."""
    pearson: float
    low: float
    high: float
    spearman: float
    covered: int
    total: int
    seconds: float
    """Until the embedding was there; next to nothing if it was kept."""


class Tried(NamedTuple):
    """An embedding that stands for a value of a search."""

    search: str
    embedding: str
    value: float
    make: Callable[[], Any]


class Given(NamedTuple):
    """What searches start from."""

    config: Config
    cache: Path
    sources: tuple[Source, ...]

    @property
    def parts(self) -> tuple[jax.Array, ...]:
        """The matrices of the sources."""
        return tuple(source.embedding for source in self.sources)

    def kept(self, of: Mapping[str, Any], make: Callable[[], Any]) -> np.ndarray:
        """A matrix that takes long, from the cache if it was made before."""
        settings = {**of, "seed": self.config.seed, **vars(self.config.sources)}
        store = jaxmeta.files.Cache(self.cache)
        return store.arrays("tuning", settings, lambda: {"e": np.asarray(make())})["e"]

    def trained(self, name: str, **settings: Any) -> np.ndarray:
        """An embedding by a method of the library."""
        how = jaxmeta.Settings(key=jax.random.key(self.config.seed), **settings)
        how = how._replace(progress=jaxmeta.ProgressBar())
        make = functools.partial(jaxmeta.meta_embedding, name, self.parts, how)
        return self.kept({"method": name, **settings}, make)


def _of_sources(search: str, value: float, sources: Sequence[Source]) -> Iterator[Tried]:
    """Each source, and all without weights."""
    made = {**_embeddings.single(sources), **_embeddings.methods(sources, ("UW",))}
    for name, make in made.items():
        yield Tried(search, name, value, make)


def window(given: Given) -> Iterator[Tried]:
    """Places on either side of a word."""
    for size in given.config.windows:
        own = dataclasses.replace(given.config.sources, window=size)
        yield from _of_sources("window", size, corpus_to_sources.sources(own, given.cache))


def beta(given: Given) -> Iterator[Tried]:
    """The shift of SGNS."""
    config = given.config.sources
    for shift in given.config.betas:
        signal = functools.partial(jaxmeta.shifted_pmi, shift=float(shift))
        with tempfile.TemporaryDirectory() as folder:
            (recipe,) = (
                dataclasses.replace(one, signal=signal)
                for one in corpus_to_sources.recipes(config, Path(folder))
                if one.name == "SGNS"
            )
            (own,) = corpus_to_sources.build(config, [recipe], given.cache)
        shifted = [own if source.name == own.name else source for source in given.sources]
        yield from (
            tried
            for tried in _of_sources("beta", shift, shifted)
            if tried.embedding in ("SGNS", "UW")
        )


def alpha(given: Given) -> Iterator[Tried]:
    """The exponent of the spectrum."""
    for exponent in given.config.alphas:
        yield from _of_sources("alpha", exponent, _embeddings.at(given.sources, exponent))


def svd(given: Given) -> Iterator[Tried]:
    """Dimensions of the truncated SVD of the concatenation."""
    for k in _possible(given, given.config.svd):
        yield Tried("SVD: dimensions", "SVD", k, functools.partial(given.trained, "SVD", k=k))


def lle(given: Given) -> Iterator[Tried]:
    """Neighbours, and dimensions for each number of them: the first of one decomposition."""
    sizes = given.config.lle
    for number in given.config.neighbours:
        made = functools.cache(
            functools.partial(given.trained, "LLE", k=max(sizes), neighbours=number)
        )
        for k in sizes:

            def first(k: int = k, made: Callable[[], np.ndarray] = made) -> np.ndarray:
                return made()[:, :k]

            yield Tried("LLE: dimensions", f"LLE, {number} neighbours", k, first)
            yield Tried("LLE: neighbours", f"LLE, {k} dimensions", number, first)


def one_to_n(given: Given) -> Iterator[Tried]:
    """Dimensions of 1TON, exact and by the released descent, and the rate of that."""
    name = "1TON as released"

    def descended(k: int, rate: float) -> np.ndarray:
        key = jax.random.key(given.config.seed)
        released = jaxmeta.released.released_one_to_n
        return given.kept(
            {"method": name, "k": k, "rate": rate},
            lambda: released(given.parts, k=k, rate=rate, key=key).embedding,
        )

    for k in _possible(given, given.config.one_to_n):
        for method, make in (
            ("1TON", functools.partial(given.trained, "1TON", k=k)),
            (name, functools.partial(descended, k, float(PAPER["1TON: rate"]))),
        ):
            yield Tried("1TON: dimensions", method, k, make)
    k = min(int(PAPER["1TON: dimensions"]), max(given.config.one_to_n))
    for rate in given.config.rates:
        yield Tried("1TON: rate", name, rate, functools.partial(descended, k, float(rate)))


def aaeme(given: Given) -> Iterator[Tried]:
    """Dimensions of AAEME."""
    for k in given.config.aaeme:
        make = functools.partial(given.trained, "AAEME", k=k, epochs=given.config.epochs)
        yield Tried("AAEME: dimensions", "AAEME", k, make)


def _possible(given: Given, sizes: Sequence[int]) -> list[int]:
    """Dimensions that a reduction of the concatenation can have."""
    return [k for k in sizes if k <= sum(source.k for source in given.sources)]


SEARCHES: dict[str, Callable[[Given], Iterator[Tried]]] = {
    "window": window,
    "beta": beta,
    "alpha": alpha,
    "svd": svd,
    "lle": lle,
    "1ton": one_to_n,
    "aaeme": aaeme,
}


def flops(given: Given) -> dict[str, float]:
    """About how many multiplications and additions searches take, where these are what takes long.

    Those of LLE are its weights (see `reconstruction_weights`) and as many full decompositions.
    """
    config, ks = given.config, [source.k for source in given.sources]
    n, width = len(given.sources[0].words), sum(ks)
    squares = width**2 + sum(k**2 for k in ks)
    steps = 100  # of the released descent
    descents = [*config.one_to_n, *(PAPER["1TON: dimensions"] for _ in config.rates)]
    return {
        "lle": sum(n * (m * squares + width**3 / 3) + 10 * n**3 for m in config.neighbours),
        "1ton": steps * sum(12 * width**2 * k + 8 * width * k**2 for k in descents),
        "aaeme": 10.0 * config.epochs * n * width * sum(config.aaeme),
    }


def speed(size: int = 2048) -> float:
    """Multiplications and additions of a matrix product in a second, the best of three."""
    x, product = jnp.ones((size, size)), jax.jit(jnp.matmul)
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        product(x, x).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return 2 * size**3 / min(seconds)


def estimates(given: Given) -> dict[str, float]:
    """Seconds that searches take at least, if nothing of them is kept."""
    path = _record.ROOT / "results" / "corpus_to_sources_10000" / "provenance.json"
    built = json.loads(path.read_text(encoding="utf-8"))["seconds"] if path.exists() else 0.0
    rate, config = speed(), given.config
    found = {name: work / rate for name, work in flops(given).items()}
    if config.sources.tokens is None:
        found["window"] = built * len(config.windows)
        found["beta"] = built / len(given.sources) * len(config.betas)
    return found


def run(config: Config, cache: Path, only: Sequence[str] = tuple(SEARCHES)) -> list[Row]:
    """All values of some searches."""
    data = _scoring.tasks([DEVELOPMENT], corpus_to_sources.model(config.sources))[DEVELOPMENT]
    given = Given(config, cache, corpus_to_sources.sources(config.sources, cache))
    seconds = estimates(given)
    rows = []
    for name in only:
        least = f"{seconds[name] / 60:.1f} minutes or more" if name in seconds else "little"
        print(f"{name}: will take {least}", file=sys.stderr, flush=True)
        for tried in SEARCHES[name](given):
            start = time.perf_counter()
            matrix = np.asarray(tried.make())
            took = time.perf_counter() - start
            score = similarity((given.sources[0].words, matrix), data)
            assert score.gold is not None
            pearson = float(np.corrcoef(score.items, score.gold)[0, 1])
            rows.append(
                Row(
                    tried.search,
                    tried.embedding,
                    float(tried.value),
                    tried.value == PAPER[tried.search],
                    pearson,
                    *correlation_interval(pearson, score.covered),
                    score.value,
                    score.covered,
                    score.total,
                    took,
                )
            )
            print(f"{tried.embedding}, {tried.search} {tried.value:g}: {100 * pearson:.2f}")
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The best value of each search and the paper's, by Pearson's correlation times 100."""
    lines = []
    for search, embedding in _record.unique(rows, "search", "embedding"):
        own = [r for r in rows if (r["search"], r["embedding"]) == (search, embedding)]
        best = max(own, key=lambda row: row["pearson"])
        tried = ", ".join(f"{row['value']:g}" for row in own)
        there = f"{100 * best['pearson']:.2f} ({100 * best['low']:.2f} to {100 * best['high']:.2f})"
        cells = ["not tried", "", ""]
        chosen = [row for row in own if str(row["paper"]) == "True"]
        if chosen:
            within = "yes" if chosen[0]["pearson"] >= best["low"] else "no"
            score = f"{100 * chosen[0]['pearson']:.2f}"
            cells = [
                f"{chosen[0]['value']:g}",
                score,
                "it is the best" if chosen[0] is best else within,
            ]
        lines.append((search, embedding, tried, f"{best['value']:g}", there, *cells))
    heads = ("search", "embedding", "tried", "best", "there (95 %)")
    return _record.markdown((*heads, "the paper's", "there", "within the interval"), lines)


def report(config: Config, out: Path, only: Sequence[str] = tuple(SEARCHES)) -> list[Row]:
    """Run, write and print."""
    started = time.time()
    rows = run(config, out.parent / "cache", only)
    _record.publish(out, config, {"rows": rows}, started=started, texts={"table": table})
    return rows


def main() -> None:
    """Do as the command line says."""
    parser = _record.parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=SEARCHES, help="some searches")
    asked = parser.parse_args()
    only = asked.only or list(SEARCHES)
    name = "_".join(["tuning", *(asked.only or [])])
    report(SMOKE if asked.smoke else FULL, _record.folder(asked, name), only)


if __name__ == "__main__":
    main()
