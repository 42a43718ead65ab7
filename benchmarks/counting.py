"""Time and memory from text to eigenpairs, against tokens and against the vocabulary.

    python -m benchmarks.counting [--out DIR] [--workers N]

The text is the wiki corpus below `JAXMETA_DATA`, and parts from its start; a window of 5, both
halves of a random split; then the leading 300 eigenpairs of its PPMI. Every run has a process of
its own, as Python's memory is slower once used. Memory is the peak of the process up to the counts,
imports included; that of `--workers`, which count, is not. The peer is a dictionary of counters,
which the released code uses, on 1/64 of the text.
"""

import argparse
import multiprocessing
import tempfile
import time
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from benchmarks._measure import best, peak
from experiments import _record
from jaxmeta import Corpus, ppmi
from jaxmeta.eigen import leading_eigenpairs, multiply_by
from jaxmeta.text import (
    Vocabulary,
    build_vocabulary,
    count_windows,
    random_blocks,
    symmetric_window,
)


@dataclass(frozen=True)
class Config:
    """What is timed."""

    parts: tuple[int, ...] = (8, 4, 2, 1)
    """The text is divided by these, for the largest vocabulary."""
    sizes: tuple[int, ...] = (2_500, 5_000, 10_000, 20_000)
    """Vocabularies for the whole text."""
    peer: int = 64
    """The text is divided by this for the peer."""
    window: int = 5
    rank: int = 300
    """Eigenpairs."""
    repeats: int = 1
    workers: int = 1
    """Processes that count."""


@dataclass(frozen=True)
class Row:
    """One setting."""

    tokens: int
    size: int
    vocabulary: float
    """Seconds to build the vocabulary."""
    counts: float
    """Seconds to count."""
    eigenpairs: float
    """Seconds to find the leading eigenpairs, compilation included."""
    pairs: int
    """Different pairs, over all offsets and parts."""
    peak: float
    """Memory of the process in MB."""
    imports: float
    """Of which before anything is read."""

    @property
    def seconds(self) -> float:
        """All in all."""
        return self.vocabulary + self.counts + self.eigenpairs


def measure(path: Path, size: int, config: Config) -> Row:
    """Time one setting once."""
    imports, corpus, start = peak(), Corpus(path), time.perf_counter()
    vocabulary = build_vocabulary(corpus, size=size)
    middle = time.perf_counter()
    found = count_windows(
        corpus,
        vocabulary,
        window=config.window,
        split=random_blocks(0),
        workers=config.workers,
    )
    end, most = time.perf_counter(), peak()
    multiply = multiply_by(ppmi(symmetric_window(found.whole)))
    leading_eigenpairs(multiply, n=size, rank=config.rank, key=jax.random.key(0))
    last = time.perf_counter()
    return Row(
        tokens=vocabulary.tokens,
        size=size,
        vocabulary=middle - start,
        counts=end - middle,
        eigenpairs=last - end,
        pairs=sum(x.nnz for part in found.nodes for x in part),
        peak=most,
        imports=imports,
    )


def dictionaries(path: Path, vocabulary: Vocabulary, window: int) -> dict[str, Counter[str]]:
    """The peer: how often each word stands at most `window` places after each other."""
    tokens, words = path.read_text().split(), set(vocabulary.words)
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for i, a in enumerate(tokens):
        if a in words:
            for b in tokens[i + 1 : i + 1 + window]:
                if b in words:
                    counts[a][b] += 1
    return counts


def against_peer(path: Path, size: int, config: Config) -> tuple[float, float]:
    """Seconds of counting by dictionaries, and by the library with its split; sums must agree."""
    corpus = Corpus(path)
    vocabulary = build_vocabulary(corpus, size=size)
    slow, theirs = best(config.repeats, lambda: dictionaries(path, vocabulary, config.window))
    fast, ours = best(
        config.repeats,
        lambda: count_windows(corpus, vocabulary, window=config.window, split=random_blocks(0)),
    )
    x = sum(ours.whole[1:], start=ours.whole[0])
    index = {word: i for i, word in enumerate(vocabulary.words)}
    assert x.nnz == sum(map(len, theirs.values()))
    for a, row in theirs.items():
        columns = [index[b] for b in row]
        assert x[[index[a]], :].toarray()[0, columns].tolist() == list(row.values())
    return slow, fast


def beginnings(archive: Path, folder: Path, parts: Sequence[int]) -> dict[int, Path]:
    """Files with the first part of a text in an archive, cut at a space, by what divides it."""
    with zipfile.ZipFile(archive) as opened:
        text = opened.read(opened.namelist()[0])
    paths = {part: folder / f"{part}.txt" for part in parts}
    for part, path in paths.items():
        stop = len(text) if part == 1 else text.rindex(b" ", 0, len(text) // part)
        path.write_bytes(text[:stop])
    return paths


def run(archive: Path, config: Config) -> Iterator[Row]:
    """All settings, and at the end the peer, which is printed."""
    spawn = multiprocessing.get_context("spawn")
    parts = (*config.parts, config.peer)
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool,
    ):
        # In a process too: one that is started inherits the peak of the one that starts it.
        paths = pool.submit(beginnings, archive, Path(folder), parts).result()
        largest = max(config.sizes)
        settings = [(1, size) for size in sorted(config.sizes)[:-1]]
        for part, size in settings + [(part, largest) for part in config.parts]:
            runs = [
                pool.submit(measure, paths[part], size, config).result()
                for _ in range(config.repeats)
            ]
            yield min(runs, key=lambda row: row.seconds)
        slow, fast = pool.submit(against_peer, paths[config.peer], largest, config).result()
        print(
            f"\n1/{config.peer} of the text, size {largest}, counting alone: a dictionary of "
            f"counters {slow:.2f} s, ours {fast:.2f} s: {slow / fast:.1f} x"
        )


def exponent(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """p and c of the power law c x^p that is nearest in logarithms."""
    slope, level = np.polyfit(np.log(x), np.log(y), 1)
    return float(slope), float(np.exp(level))


def plot(rows: Sequence[Row], path: Path) -> None:
    """Seconds against tokens and against the vocabulary, on logarithmic scales."""
    stages = {
        "vocabulary": (_record.ORANGE, "s"),
        "counts": (_record.BLUE, "o"),
        "eigenpairs": (_record.GREEN, "^"),
    }
    with _record.drawing(path, 1, 2, size=(10, 4.4), sharey=True) as (_, (panels,)):
        for axes, name in zip(panels, ("tokens", "size"), strict=True):
            own = along(rows, name)
            x = [getattr(row, name) for row in own]
            for stage, (colour, marker) in stages.items():
                y = [getattr(row, stage) for row in own]
                p, c = exponent(x, y)
                axes.loglog(x, y, marker, color=colour, ms=7, label=f"{stage}: exponent {p:.2f}")
                axes.loglog(x, [c * v**p for v in x], color=colour, lw=1.2)
            axes.set_xticks(x, [f"{v:,}" if name == "size" else f"{v / 1e6:.1f} M" for v in x])
            axes.set_xticks([], minor=True)
            axes.legend(frameon=False)
        ticks = (0.5, 1, 2, 5, 10, 20)
        panels[0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        panels[0].set_yticks([], minor=True)
        panels[0].set(xlabel="tokens of text", ylabel="seconds")
        panels[0].set_title(f"{max(row.size for row in rows):,} words")
        panels[1].set(xlabel="words in the vocabulary")
        panels[1].set_title(f"{max(row.tokens for row in rows) / 1e6:.1f} M tokens")


def along(rows: Sequence[Row], name: str) -> list[Row]:
    """Rows in which `name` varies and the other of tokens and size is the largest."""
    other = {"tokens": "size", "size": "tokens"}[name]
    largest = max(getattr(row, other) for row in rows)
    own = [row for row in rows if getattr(row, other) == largest]
    return sorted(own, key=lambda row: getattr(row, name))


def main() -> None:
    """Print the table; write it, its provenance and a figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    default = _record.ROOT / "results" / "counting"
    parser.add_argument("--out", type=Path, default=default, help="folder (results/counting)")
    parser.add_argument("--workers", type=int, default=1, help="processes that count (1)")
    options = parser.parse_args()
    (archive,) = _record.data("corpora/wiki.zip")
    config, started, rows = Config(workers=options.workers), time.time(), []
    heads = ("vocabulary", "counts", "eigenpairs", "peak")
    print(f"{'tokens':>12}{'words':>8}" + "".join(f"{head:>12}" for head in heads))
    for row in run(archive, config):
        rows.append(row)
        print(
            f"{row.tokens:>12,}{row.size:>8,}{row.vocabulary:>10.2f} s{row.counts:>10.2f} s"
            f"{row.eigenpairs:>10.2f} s{row.peak:>9.0f} MB",
            flush=True,
        )
    for name, label in (("tokens", "tokens"), ("size", "words")):
        own = along(rows, name)
        x = [getattr(row, name) for row in own]
        found = (
            f"{stage} {exponent(x, [getattr(row, stage) for row in own])[0]:.2f}"
            for stage in ("vocabulary", "counts", "eigenpairs")
        )
        print(f"exponents in {label:<8}{', '.join(found)}")
    print(f"imports take {rows[-1].imports:.0f} MB of the peak")
    _record.publish(
        options.out,
        config,
        {"rows": rows},
        started=started,
        figures={"counting": lambda _, path: plot(rows, path)},
        dtype="int64",
    )


if __name__ == "__main__":
    main()
