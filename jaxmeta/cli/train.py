"""`jaxmeta train` goes from text to sources, and from these to a meta-embedding."""

from pathlib import Path
from typing import Annotated, Any

import typer

import jaxmeta as jm
from jaxmeta.cli.shared import (
    AsJson,
    Cut,
    Force,
    MethodName,
    Out,
    Seed,
    choice,
    choices,
    cut,
    method_named,
    outputs,
    progress,
    put,
    put_json,
    refuse,
    stems,
    table,
)

__all__ = ["Alpha", "Cache", "Lines", "Lower", "Signals", "Size", "Window", "recipes_of", "train"]

Signals = Annotated[
    list[str],
    typer.Option(
        metavar="NAME",
        help="Of counts: GloVe (their logarithm), SGNS (PMI less log 3), LSA (positive PMI).",
        autocompletion=lambda: list(jm.text.SIGNALS),
    ),
]
Size = Annotated[int, typer.Option(min=0, help="The most frequent words; 0 for all.")]
Window = Annotated[int, typer.Option(min=1, help="Words to either side that are counted.")]
Alpha = Annotated[float, typer.Option(min=0.0, help="Exponent of the spectrum.")]
Lower = Annotated[
    bool, typer.Option("--lower", help="Runs of letters and digits, in lower case, are words.")
]
Lines = Annotated[bool, typer.Option("--lines", help="Each line is a document.")]
Cache = Annotated[
    Path | None,
    typer.Option(file_okay=False, help="Keep steps in this folder: what was stopped goes on."),
]


def recipes_of(corpora: list[Path], signals: list[str], lower: bool, lines: bool) -> list[Any]:
    """A recipe for each signal of each corpus."""
    found = choices("--signal", signals, jm.text.SIGNALS)
    if len(set(found)) < len(found):
        refuse("--signal", ", ".join(found), "each signal once", "drop the others")
    tokenise = jm.text.lower_words if lower else jm.text.whitespace
    recipes = []
    for name, path in zip(stems(corpora), corpora, strict=True):
        corpus = jm.Corpus(path, tokenise=tokenise, lines_are_documents=lines)
        for signal in found:
            title = signal if len(corpora) == 1 else f"{name}-{signal}"
            recipes.append(jm.Recipe(title, corpus, jm.text.SIGNALS[signal]))
    return recipes


def train(
    corpora: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEXT",
            exists=True,
            show_default=False,
            help="Texts, plain or .gz, .bz2, .zip, or folders of them.",
        ),
    ],
    out: Out,
    signal: Signals = ["GloVe", "SGNS", "LSA"],  # noqa: B006 - typer copies it
    rule: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Which k: equalised, or one of RULES, such as paper or ideal.",
            autocompletion=lambda: [jm.text.EQUALISED, *jm.RULES],
        ),
    ] = "equalised",
    method: MethodName = "default",
    k: Cut = "all",
    size: Size = 20_000,
    min_count: Annotated[int, typer.Option(min=1, help="Of a word, in each text.")] = 1,
    window: Window = 5,
    alpha: Alpha = 0.5,
    lower: Lower = False,
    lines: Lines = False,
    seed: Seed = 0,
    cache: Cache = None,
    save_sources: Annotated[
        Path | None, typer.Option(file_okay=False, help="Keep each source in this folder, as .npz.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Make sources of texts, by counts of words near words, and a meta-embedding of these.

    With --cache a run that was stopped goes on where it was, and one with other settings repeats
    only what depends on them.
    """
    import jax

    name, wanted = method_named(method), cut(k)
    named = choice("--rule", rule, (jm.text.EQUALISED, *jm.RULES))
    recipes = recipes_of(corpora, signal, lower, lines)
    kept = {r.name: save_sources / f"{r.name}.npz" for r in recipes} if save_sources else {}
    outputs((out, *kept.values()), corpora, force)
    jm.files.vectors.format_of(out)
    sources = jm.build_sources(
        recipes, size=size or None, min_count=min_count, window=window, seed=seed, alpha=alpha,
        rule=named, cache=cache, progress=progress(),
    )  # fmt: skip
    for source in sources:
        if kept:
            jm.write_vectors(kept[source.name], (source.words, jax.device_get(source.embedding)))
    settings = jm.Settings(k=wanted, key=jax.random.key(seed), progress=progress())
    found = jm.meta_embedding(name, sources, settings)
    jm.write_vectors(out, found, progress=progress())
    rows = [
        {"name": s.name, "k": s.k, "sigma": s.sigma, "rank": s.rank, "residual": s.residual,
         "file": kept.get(s.name)}
        for s in sources
    ]  # fmt: skip
    words, dimensions = found.matrix.shape
    if as_json:
        shape = {"out": out, "method": name, "words": words, "dimensions": dimensions}
        put_json(shape | {"rule": named, "sources": rows})
        return
    table(
        ("source", "k", "noise sigma", "values above the noise"),
        [(r["name"], f"{r['k']:,}", f"{r['sigma']:.3g}", f"{r['rank']:,}") for r in rows],
    )
    put()
    put(f"{out}: {words:,} words x {dimensions:,} dimensions")
