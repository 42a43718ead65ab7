"""Killed writers, merges and pipelines: what is there is the old or the new, or is refused by name.

Half of the kills come before the n-th thing that is done to a file, for each n in turn; the others
at a random time. After each kill the work is done again, and nothing of the killed may be left.
Refused are a matrix and a list of words of which only one had taken its name.
"""

import hashlib
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jaxmeta
from jaxmeta.files import Vectors, merge_files, plan_header, read_vectors, write_vectors
from jaxmeta.text import Corpus, Recipe, build_sources, log_count, ppmi

from ._child import count_events, run_child

__all__ = ["run"]


def _vectors(seed: int, rows: int = 2000) -> Vectors:
    rng = np.random.default_rng(seed)
    words = tuple(f"w{i}" for i in rng.permutation(rows))
    return Vectors(words, rng.normal(size=(rows, 20)).astype(np.float32))


def _same(x: Vectors, y: Vectors) -> bool:
    return x.words == y.words and x.matrix.tobytes() == y.matrix.tobytes()


def _kills(
    number: int, rng: random.Random, folder: Path, work: Callable[[], Any], reset: Callable[[], Any]
) -> Any:
    """Kill a piece of work so many times; each time tell whether it was, and where."""
    reset()
    events, seconds = count_events(work, folder=folder)
    half = (number + 1) // 2
    for i in range(number):
        reset()
        if i % 2 == 0:
            at = i // 2 % events if half > events else i // 2 * events // half
            yield run_child(work, folder=folder, at=at), f"before event {at} of {events}"
        else:
            after = rng.uniform(0, seconds)
            yield run_child(work, folder=folder, after=after), f"after {after:.4f} s"


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.part*"))


def _writers(number: int, seed: int, name: str, settings: dict[str, str]) -> dict[str, Any]:
    """A writer that overwrites a file."""
    old, new = _vectors(1), _vectors(2, 2500)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        given = {key: folder / value for key, value in settings.items()}
        read = lambda: read_vectors(folder / name, **given)  # noqa: E731

        def reset() -> None:
            write_vectors(folder / name, old, **given)

        work = lambda: write_vectors(folder / name, new, **given)  # noqa: E731
        row = _row(f"write_vectors to {name}" + (" and a list" if settings else ""))
        for ended, where in _kills(number, random.Random(f"{seed} {name}"), folder, work, reset):
            _count(row, ended, where, lambda: _state(read, old, new))
            work()
            if _left(folder) or not _same(read(), new):
                row["faults"].append(f"{where}: {_left(folder)} left after the next write")
    return row


def _state(read: Callable[[], Vectors], old: Vectors, new: Vectors) -> str:
    try:
        found = read()
    except ValueError as error:
        return "refused" if "; " in str(error) else f"unclear: {error}"
    return "old" if _same(found, old) else "new" if _same(found, new) else "neither"


def _row(what: str) -> dict[str, Any]:
    return {"what": what, "kills": 0, "came too late": 0, "old": 0, "new": 0, "refused": 0,
            "faults": []}  # fmt: skip


def _count(row: dict[str, Any], ended: Any, where: str, state: Callable[[], str]) -> None:
    if isinstance(ended.found, Exception):
        row["faults"].append(f"{where}: {ended.found!r}")
    row["kills" if ended.killed else "came too late"] += 1
    found = state()
    if found in row:
        row[found] += 1
    else:
        row["faults"].append(f"{where}: {found}")


def _merges(number: int, seed: int, name: str, method: str) -> dict[str, Any]:
    """A merge that overwrites a result, and its plan."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        sources = [folder / "a.npy", folder / "b.txt"]
        for j, path in enumerate(sources):
            write_vectors(path, _vectors(j, 300))
        out, plan, old = (
            folder / "out" / name,
            folder / "out" / "plan.safetensors",
            _vectors(9, 300),
        )

        def reset() -> None:
            shutil.rmtree(folder / "out", ignore_errors=True)
            write_vectors(out, old)

        work = lambda: merge_files(sources, out, method=method, plan_to=plan)  # noqa: E731
        reset()
        ended = run_child(work, folder=folder)
        if isinstance(ended.found, Exception):
            raise ended.found
        new = read_vectors(out)
        row = _row(f"merge_files, {method}, to {name}")
        for ended, where in _kills(number, random.Random(f"{seed} {name}"), folder, work, reset):
            _count(row, ended, where, lambda: _state(lambda: read_vectors(out), old, new))
            if plan.exists() and plan_header(plan)["width"] != new.matrix.shape[1]:
                row["faults"].append(f"{where}: another plan")
            again = run_child(work, folder=folder)
            if isinstance(again.found, Exception) or _left(folder):
                row["faults"].append(f"{where}: {again.found!r}, {_left(folder)} left")
            elif not _same(read_vectors(out), new):
                row["faults"].append(f"{where}: done again it is another")
    return row


def pipeline(folder: Path, cache: Path | None) -> str:
    """Build sources of a small text; return a digest of all that comes out."""
    corpus = Corpus(folder / "text.txt", lines_are_documents=True)
    recipes = [Recipe("GloVe", corpus, log_count), Recipe("LSA", corpus, ppmi)]
    found = hashlib.sha256()
    for source in build_sources(recipes, size=60, window=3, rule="spiked", cache=cache):
        found.update(repr((source.name, source.sigma, source.k, source.rank)).encode())
        found.update(np.asarray(source.embedding).tobytes())
    return found.hexdigest()


def corpus(folder: Path) -> None:
    """Write the text of `pipeline`."""
    model = jaxmeta.text.latent_model(60, rank=4, strength=0.5, seed=0)
    text = jaxmeta.text.sample_tokens(model, tokens=20_000, documents=50, seed=0)
    jaxmeta.text.write_corpus(folder / "text.txt", model, text)


def _pipelines(number: int, seed: int) -> dict[str, Any]:
    """A pipeline that goes on where it was killed until it ends, and then one from the start."""
    row = {"what": "build_sources with a cache", "kills": 0, "came too late": 0,
           "resumed to the same bits": 0, "faults": []}  # fmt: skip
    rng = random.Random(f"{seed} pipeline")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        cache = folder / "cache"
        run_child(lambda: corpus(folder), folder=folder)
        plain = run_child(lambda: pipeline(folder, None), folder=folder)
        if not isinstance(plain.found, str):
            raise RuntimeError("the pipeline does not end") from plain.found
        events, seconds = count_events(lambda: pipeline(folder, cache), folder=cache)
        shutil.rmtree(cache)
        step = 0
        while row["kills"] < number:
            if step % 2 == 0:
                ended = run_child(
                    lambda: pipeline(folder, cache), folder=cache, at=rng.randrange(6)
                )
            else:
                after = rng.uniform(0, seconds)
                ended = run_child(lambda: pipeline(folder, cache), folder=cache, after=after)
            step += 1
            if ended.killed:
                row["kills"] += 1
                continue
            row["came too late"] += 1
            if ended.found != plain.found:
                row["faults"].append(f"after {row['kills']} kills: {ended.found!r}")
            else:
                row["resumed to the same bits"] += 1
            if _left(folder):
                row["faults"].append(f"after {row['kills']} kills: {_left(folder)} left")
            shutil.rmtree(cache)
        ended = run_child(lambda: pipeline(folder, cache), folder=cache)
        row["resumed to the same bits"] += ended.found == plain.found
        if ended.found != plain.found or _left(folder):
            row["faults"].append(f"in the end: {ended.found!r}, {_left(folder)} left")
    return row | {"things done to files": events}


WRITERS = (
    ("v.txt", {}),
    ("v.txt.gz", {}),
    ("v.txt.zip", {}),
    ("v.bin", {}),
    ("v.npz", {}),
    ("v.npy", {}),
    ("v.safetensors", {}),
    ("v.safetensors", {"words": "words.txt"}),
)
MERGES = (("out.npy", "UW"), ("out.txt", "default"))


def run(number: int, seed: int) -> dict[str, Any]:
    """Kill each writer, each merge and the pipeline so many times."""
    with warnings.catch_warnings(action="ignore"):
        rows = [_writers(number, seed, *each) for each in WRITERS]
        rows += [_merges(max(number // len(MERGES), 1), seed, *each) for each in MERGES]
        rows.append(_pipelines(number, seed))
    faults = [f"{row['what']}: {fault}" for row in rows for fault in row.pop("faults")]
    return {"rows": rows, "faults": faults}
