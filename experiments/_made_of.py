"""The sources that the embeddings of a table are made of, in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import _record
from jaxmeta.text import Source


@dataclass(frozen=True)
class Made:
    """A source that embeddings are made of."""

    seed: int
    source: str
    corpus: str
    words: int
    sigma: float
    rank: int
    k: int


def made_of(sources: Sequence[Source], corpora: Sequence[str], seed: int) -> list[Made]:
    """Noise and dimensions of sources."""
    return [
        Made(seed, s.name, Path(corpus).name, len(s.words), s.sigma, s.rank, s.k)
        for s, corpus in zip(sources, corpora, strict=True)
    ]


def table(made: Sequence[Mapping[str, Any]]) -> str:
    """Noise and dimensions of sources, the range over seeds."""
    lines = []
    for source, corpus in _record.unique(made, "source", "corpus"):
        own = [row for row in made if (row["source"], row["corpus"]) == (source, corpus)]
        sigmas, ks, ranks = ([row[name] for row in own] for name in ("sigma", "k", "rank"))
        cells = (
            low if low == high else f"{low} to {high}"
            for low, high in (
                (f"{min(sigmas):.4f}", f"{max(sigmas):.4f}"),
                (f"{min(ranks):.0f}", f"{max(ranks):.0f}"),
                (f"{min(ks):.0f}", f"{max(ks):.0f}"),
            )
        )
        lines.append((source, corpus, f"{own[0]['words']:,.0f}", *cells))
    return _record.markdown(("", "corpus", "words n", "sigma", "rank", "k"), lines)
