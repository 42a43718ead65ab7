"""`jaxmeta inspect`, `compare` and `neighbours` look at files, one by one and beside each other."""

import itertools
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

import jaxmeta as jm
from jaxmeta.cli.shared import (
    AsJson,
    Files,
    Force,
    MethodName,
    Seed,
    method_named,
    outputs,
    progress,
    put,
    put_json,
    read_aligned,
    refuse,
    say,
    stems,
    table,
)

__all__ = ["compare", "inspect", "neighbours"]

FEWEST = 3  # common words of which a diagnosis can be made


def inspect(
    files: Files,
    plot: Annotated[
        Path | None, typer.Option(metavar="X.png|X.pdf|X.svg", help="Draw the diagnosis.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Look at files of vectors: size, spectrum, duplicates, overlap, and which would dominate.

    The diagnosis is of the files side by side as they are, on the words that all have.
    """
    outputs((plot,), files, force)
    names, found = stems(files), []
    rows: list[dict[str, Any]] = []
    for name, path in zip(names, files, strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", jm.files.DuplicateWords)
            vectors = jm.read_vectors(path, progress=progress())
        found.append(vectors)
        about = jm.files.describe(vectors)._asdict()
        repeats = [str(w.message) for w in caught if w.category is jm.files.DuplicateWords]
        size = {"name": name, "file": path, "bytes": path.stat().st_size}
        rows.append(size | about | {"repeated_words": repeats[0] if repeats else None})
    overlaps: list[dict[str, Any]] = [
        {"first": names[i], "second": names[j], "common_words": len({*a.words} & {*b.words})}
        for (i, a), (j, b) in itertools.combinations(enumerate(found), 2)
    ]
    common = set(found[0].words).intersection(*(each.words for each in found[1:]))
    diagnosis = None
    if len(common) >= FEWEST:
        together = jm.align(found, names=names)
        diagnosis = jm.diagnose(
            together.sources, names=names, words=together.words, progress=progress()
        )
        if plot:
            jm.plot_diagnosis(diagnosis, plot)
    elif plot:
        do = "leave --plot out, or bring words to the same spelling"
        refuse("--plot", f"{len(common)} common words", f"at least {FEWEST}", do)
    if as_json:
        told = diagnosis and diagnosis._asdict() | {"verdict": diagnosis.verdict}
        put_json({"files": rows, "overlaps": overlaps, "diagnosis": told, "plot": plot})
        return
    columns = {
        "words": lambda row: f"{row['words']:,}",
        "dimensions": lambda row: f"{row['dimensions']:,}",
        "dtype": lambda row: row["dtype"],
        "MB": lambda row: f"{row['bytes'] / 1e6:.1f}",
        "mean length": lambda row: f"{row['mean_length']:.3g}",
        "effective rank": lambda row: f"{row['effective_rank']:.1f}",
        "k for 5 %": lambda row: f"{row['needed']:,}",
        "zero rows": lambda row: f"{row['zero_rows']:,}",
        "repeated rows": lambda row: f"{row['repeated_rows']:,}",
    }
    table(("file", *columns), [(r["name"], *(each(r) for each in columns.values())) for r in rows])
    put()
    put("k for 5 %: dimensions that are enough if inner products may change by 5 %.")
    for row in rows:
        if row["repeated_words"]:
            put(row["repeated_words"])
    for each in overlaps:
        put(f"{each['first']} and {each['second']}: {each['common_words']:,} common words.")
    if diagnosis is None:
        put(f"The files have {len(common)} words in common: too few for a diagnosis.")
    else:
        put()
        put(diagnosis.report())
    if plot:
        put(f"plot: {plot}")


def compare(files: Files, as_json: AsJson = False) -> None:
    """How alike files are, pair by pair, on the words that all of them have.

    PIP loss has the scale of the files. CKA is 1 for the same up to rotation and scale, and the
    unbiased one about 0 for what has nothing in common; Procrustes distance is from 0 to 1.41.
    """
    if len(files) < 2:
        refuse("FILE...", "one file", "two or more", "name what it is to be compared with")
    together = read_aligned(files, "intersection")
    names, show = stems(files), progress()
    pairs, rows = list(itertools.combinations(range(len(files)), 2)), []
    if len(together.words) < 4:
        refuse("FILE...", f"{len(together.words)} common words", "at least 4", "see inspect")
    for done, (i, j) in enumerate(pairs, start=1):
        e, f = together.sources[i], together.sources[j]
        rows.append({
            "first": names[i],
            "second": names[j],
            "pip_loss": float(jm.pip_loss(e, f)),
            "cka": float(jm.similarity.cka(e, f)),
            "unbiased_cka": float(jm.similarity.unbiased_cka(e, f)),
            "procrustes_distance": float(jm.similarity.procrustes_distance(e, f)),
        })  # fmt: skip
        show("compare", done / len(pairs))
    if as_json:
        put_json({"words": len(together.words), "pairs": rows})
        return
    put(f"{len(together.words):,} common words")
    put()
    table(
        ("", "", "PIP loss", "CKA", "unbiased CKA", "Procrustes"),
        [(first, second, *(f"{x:.4g}" for x in numbers)) for first, second, *numbers in
         (row.values() for row in rows)],
    )  # fmt: skip


def neighbours(
    word: Annotated[str, typer.Argument(help="As it is spelled in the files.")],
    files: Files,
    count: Annotated[int, typer.Option(min=1, help="How many.")] = 10,
    method: MethodName = "default",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """The words nearest to a word, by cosine, in each file and in the combination of all.

    All are looked up among the words that every file has.
    """
    import jax

    name = method_named(method)
    together = read_aligned(files, "intersection")
    if word not in together.words:
        do = "check case and spelling"
        refuse("WORD", repr(word), f"one of the {len(together.words):,} that all files have", do)
    found: dict[str, Any] = {}
    for source, matrix in zip(stems(files), together.sources, strict=True):
        vectors = jm.Vectors(together.words, jax.device_get(matrix))
        found[source] = vectors.most_similar(word, count)
    if len(files) > 1:
        settings = jm.Settings(key=jax.random.key(seed), progress=progress())
        both = jm.meta_embedding(name, together, settings)
        found[f"together: {name}"] = both.most_similar(word, count)
    if as_json:
        listed = {
            source: [{"word": each, "cosine": cosine} for each, cosine in near]
            for source, near in found.items()
        }
        put_json({"word": word, "words": len(together.words), "neighbours": listed})
        return
    say(f"among {len(together.words):,} words")
    cells = [[f"{each} {cosine:.2f}" for each, cosine in near] for near in found.values()]
    table(list(found), list(zip(*cells, strict=True)))
