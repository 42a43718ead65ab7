"""Mutated files of all formats: each is read right or refused with an error that names it.

Right is what an oracle reads that knows nothing of the library, or, where checksums guard a file,
what was there before. Half of the mutations of packed files are of their content, packed again.
Wrong is what neither is; unclear an error that does not name the file or say what to do; other any
other exception; slow what takes over 5 seconds; large what takes memory for over 200 MB and ten
times the file. Damaged entries of a cache are always right: they are made again.
"""

import bz2
import contextlib
import faulthandler
import gzip
import io
import json
import random
import resource
import signal
import tempfile
import time
import types
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jaxmeta
from jaxmeta.files import Cache, Vectors, load_plan, read_vectors, save_plan, write_vectors
from jaxmeta.files._tables import opened_table
from jaxmeta.text import (
    Corpus,
    build_vocabulary,
    count_windows,
    given_vocabulary,
    load_counts,
    save_counts,
)

from . import oracles
from .mutations import mutated

__all__ = ["TARGETS", "run"]

SECONDS = 5
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a folder that is in memory
ROOM = 200_000_000
WORDS = ("the", "dé", "new york", ". . .", "x", "2012", "at name@domain.com", "-", "Ω", "a1")


class Target(NamedTuple):
    """A kind of file that is attacked."""

    name: str
    """Of the file."""
    content: bytes
    read: Callable[[Path], Any]
    right: Callable[[bytes, bytes], list]
    """From the content, packed and not, to what may be read; [] if it has to be refused."""
    pack: Callable[[bytes], bytes] | None = None
    beside: Mapping[str, bytes] = types.MappingProxyType({})
    by: str = ""


def _vectors() -> Vectors:
    rng = np.random.default_rng(0)
    words = (*WORDS, *(f"w{i}" for i in range(30)))
    return Vectors(words, rng.normal(size=(len(words), 6)).astype(np.float32))


def _written(name: str, vectors: Vectors, **settings: Any) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        settings = {key: f"{folder}/{value}" for key, value in settings.items()}
        write_vectors(f"{folder}/{name}", vectors, **settings)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _zipped(content: bytes, name: str = "v.txt", kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        archive.writestr(zipfile.ZipInfo(name), content, kind)
    return file.getvalue()


def _text(content: bytes) -> list:
    return [x for x in (oracles.text(content, header) for header in (True, False)) if x]


def _some(found: Any) -> list:
    return [] if found is None else [found]


def _listed(words: Any, found: Any) -> list:
    if words is None or found is None or len(words) != len(found):
        return []
    return _some(oracles.kept(words, found))


def _npz(part: str, vectors: Vectors) -> tuple[bytes, Callable[[bytes], bytes]]:
    """One array of an archive, and how to put another in its place."""
    arrays = {"words": np.array(vectors.words), "vectors": vectors.matrix}
    contents = {}
    for name, array in arrays.items():
        file = io.BytesIO()
        np.save(file, array)
        contents[name] = file.getvalue()

    def pack(content: bytes) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, each in (contents | {part: content}).items():
                archive.writestr(zipfile.ZipInfo(f"{name}.npy"), each, zipfile.ZIP_DEFLATED)
        return file.getvalue()

    return contents[part], pack


def _header(content: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    """The header of a safetensors file, and how to put another in its place."""
    length = int.from_bytes(content[:8], "little")

    def pack(head: bytes) -> bytes:
        return len(head).to_bytes(8, "little") + head + content[8 + length :]

    return content[8 : 8 + length], pack


def _vector_targets() -> list[Target]:
    vectors = _vectors()
    words = list(vectors.words)
    plain = Vectors(tuple(f"w{i}" for i in range(40)), vectors.matrix)
    text = _written("v.txt", vectors)["v.txt"]
    glove = _written("v.glove", vectors)["v.glove"]
    by_text = lambda _, content: _text(content)  # noqa: E731
    found = [
        Target("v.txt", text, read_vectors, by_text),
        Target("v.vec", text.replace(b"\n", b" \n"), read_vectors, by_text),
        Target("v.glove", glove, read_vectors, by_text),
        Target("w.txt", text.replace(b"\n", b"\r\n"), read_vectors, by_text),
    ]
    for suffix, pack in ((".gz", gzip.compress), (".bz2", bz2.compress), (".zip", _zipped)):
        found.append(Target(f"v.txt{suffix}", text, read_vectors, by_text, pack))
    by_binary = lambda _, content: _some(oracles.binary(content))  # noqa: E731
    binary = _written("v.bin", plain)["v.bin"]
    found.append(Target("v.bin", binary, read_vectors, by_binary))
    found.append(Target("v.bin.gz", binary, read_vectors, by_binary, gzip.compress))
    by_npz = lambda content, _: _some(oracles.npz(content))  # noqa: E731
    found.append(Target("v.npz", _written("v.npz", vectors)["v.npz"], read_vectors, by_npz))
    for part in ("words", "vectors"):
        found.append(Target(f"{part}.npz", *_rest(_npz(part, vectors), read_vectors, by_npz)))
    by_npy = lambda content, _: _listed(words, oracles.matrix(content))  # noqa: E731
    columns = io.BytesIO()
    np.save(columns, np.asfortranarray(vectors.matrix.astype(">f8")))
    with_list = lambda path: read_vectors(path, words=words)  # noqa: E731
    found.append(Target("columns.npy", columns.getvalue(), with_list, by_npy))
    files = _written("v.npy", vectors)
    # The matrix ends in a digest, without which it is as others write it.
    same = lambda *_: [vectors]  # noqa: E731
    by_list = lambda _, content: _listed(oracles.listed(content), vectors.matrix)  # noqa: E731
    beside = {"v.words.txt": files["v.words.txt"]}

    def by_matrix(content: bytes, _: bytes) -> list:
        wholes = map(oracles.matrix, (content[:-TIE], content))
        return [found for whole in wholes for found in _listed(words, whole)]

    found.append(Target("v.npy", files["v.npy"], read_vectors, by_matrix, None, beside))
    read_list = lambda path: read_vectors(path.with_name("v.npy"))  # noqa: E731
    found.append(
        Target(
            "v.words.txt", beside["v.words.txt"], read_list, same, None, {"v.npy": files["v.npy"]}
        )
    )
    bare = {"v.npy": files["v.npy"][:-TIE]}
    by_words = lambda path: read_vectors(path.with_name("v.npy"), words=path)  # noqa: E731
    found.append(Target("words.txt", beside["v.words.txt"], by_words, by_list, None, bare))
    whole = _written("v.safetensors", vectors)["v.safetensors"]
    by_tensors = lambda content, _: _some(oracles.tensors(content, words))  # noqa: E731
    found.append(Target("v.safetensors", whole, read_vectors, by_tensors))
    found.append(Target("head.safetensors", *_rest(_header(whole), read_vectors, by_tensors)))
    found.append(
        Target(
            "model.safetensors", _model(vectors), read_vectors, by_tensors, None, _tokenizer(words)
        )
    )
    found += [
        each._replace(read=_table, by="merge_files")
        for each in found
        if each.name in ("v.txt", "v.txt.gz", "v.bin", "v.npz", "v.npy", "v.safetensors")
    ]
    return found


def _table(path: Path) -> Vectors:
    """What merge_files reads, in another order."""
    with contextlib.ExitStack() as stack:
        table = opened_table(path, stack, path.parent, mean=False, shown=lambda _: None)
        turned = np.arange(len(table.words))[::-1]
        return Vectors(table.words, table.rows(turned)[turned])


TIE = 1 + len("sha256 of the words ") + 64 + 1


def _rest(pair: tuple, read: Any, right: Any) -> tuple:
    return pair[0], read, right, pair[1]


def _model(vectors: Vectors) -> bytes:
    """A table in bfloat16, without its words."""
    bits = (vectors.matrix.view(np.uint32) >> 16).astype("<u2").tobytes()
    tensor = {"dtype": "BF16", "shape": vectors.matrix.shape, "data_offsets": [0, len(bits)]}
    head = json.dumps({"x": tensor}).encode()
    return len(head).to_bytes(8, "little") + head + bits


def _tokenizer(words: list[str]) -> dict[str, bytes]:
    vocab = {word: i for i, word in enumerate(words)}
    return {"tokenizer.json": json.dumps({"model": {"vocab": vocab}}).encode()}


def _corpus_targets() -> list[Target]:
    rng = random.Random(0)
    content = "".join(rng.choice((*WORDS, "\n", "  ")) + " " for _ in range(2000)).encode()

    def read(path: Path) -> Any:
        corpus = Corpus(path, lines_are_documents=True)
        found = build_vocabulary(corpus)
        counts = count_windows(corpus, given_vocabulary(found.words[:3]), window=2)
        return dict(zip(found.words, found.counts.tolist(), strict=True)), sum(
            x.nnz for x in counts.whole
        )

    def right(_: bytes, content: bytes) -> list:
        try:
            words = content.removeprefix(oracles.MARK).decode().split()
        except UnicodeDecodeError:
            return []
        return [] if b"\0" in content else [Counter(words)]

    kinds = {"": None, ".gz": gzip.compress, ".bz2": bz2.compress, ".zip": _zipped}
    return [Target(f"c.txt{x}", content, read, right, pack) for x, pack in kinds.items()]


def _other_targets() -> list[Target]:
    """What the library keeps for itself, guarded by checksums."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        numbers = jaxmeta.moments((np.eye(5, 3, dtype=np.float32), np.eye(5, 2, dtype=np.float32)))
        plan = jaxmeta.fit("UW", numbers)
        save_plan(folder / "plan.safetensors", plan, names=("a", "b"))
        (folder / "text").write_text("a b a c b a b c a a")
        counts = count_windows(Corpus(folder / "text"), given_vocabulary(list("abc")), window=2)
        save_counts(folder / "counts.npz", counts)
        kept = {"x": np.arange(12.0).reshape(3, 4), "y": np.asfortranarray(np.eye(2, 3))}
        Cache(folder / "cache").arrays("stage", {}, lambda: kept)
        (entry,) = (folder / "cache").iterdir()
        contents = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        contents["entry"] = entry.read_bytes()
    dense = [x.toarray().tolist() for x in counts.whole]
    make = lambda: kept  # noqa: E731

    def arrays(path: Path) -> Any:
        path.rename(path.with_name(entry.name))
        found = Cache(path.parent).arrays("stage", {}, make)
        path.with_name(entry.name).unlink()
        return [found[name].tobytes() for name in kept]

    def loaded(path: Path) -> Any:
        return [x.toarray().tolist() for x in load_counts(path).whole]

    def planned(path: Path) -> Any:
        found = load_plan(path)
        return found.method, [np.asarray(x).tobytes() for x in found.maps]

    def plans(content: bytes, _: bytes) -> list:
        """Its numbers are guarded by nothing."""
        head = int.from_bytes(content[:8], "little")
        tensors = json.loads(content[8 : 8 + head])
        offsets = [tensors[f"maps.{j}"]["data_offsets"] for j in range(2)]
        pieces = [content[8 + head + start : 8 + head + end] for start, end in offsets]
        return [(tensors["__metadata__"]["method"], pieces)]

    entry_right = [array.tobytes() for array in kept.values()]
    return [
        Target("plan.safetensors", contents["plan.safetensors"], planned, plans),
        Target("plan.safetensors", *_rest(_header(contents["plan.safetensors"]), planned, plans)),
        Target("counts.npz", contents["counts.npz"], loaded, lambda *_: [dense]),
        Target("entry", contents["entry"], arrays, lambda *_: [entry_right]),
    ]


def TARGETS() -> list[Target]:
    """All that is attacked."""
    return [*_vector_targets(), *_corpus_targets(), *_other_targets()]


class Slow(BaseException):
    """A reader takes too long."""


def _slow(*_: Any) -> None:
    raise Slow


def _equal(found: Any, right: Any) -> bool:
    """Equal; numbers of text may be rounded twice by the oracle."""
    if isinstance(right, Counter):
        return found[0] == right
    if isinstance(found, Vectors):
        words, y = right
        x = found.matrix
        if found.words != tuple(words) or x.shape != y.shape:
            return False
        if x.dtype != y.dtype.newbyteorder("="):
            return False
        return bool((np.abs(x - y) <= 2 * np.spacing(np.maximum(np.abs(x), np.abs(y)))).all())
    return found == right


def _judged(target: Target, path: Path, content: bytes, inner: bytes) -> tuple[str, str]:
    """What became of one file: a verdict, and what to see of it."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with warnings.catch_warnings(action="ignore"):
            found = target.read(path)
    except Slow:
        return "slow", ""
    except (ValueError, OSError) as error:
        said = str(error)
        clear = str(path.parent) in said and "; " in said and len(said) < 2000
        return ("refused", "") if clear else ("unclear", said)
    except Exception as error:
        return "other", f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        right = target.right(content, inner)
    except Exception as error:  # the oracle's own
        return "wrong", f"the oracle: {type(error).__name__}: {error}"
    return ("right", "") if any(_equal(found, x) for x in right) else ("wrong", repr(found)[:300])


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


VERDICTS = ("right", "refused", "wrong", "unclear", "other", "slow", "large")


def run(number: int, seed: int, keep: Path | None = None) -> dict[str, Any]:
    """Attack with so many files; what went wrong is put into the folder `keep`."""
    rows, faults = [], []
    signal.signal(signal.SIGALRM, _slow)
    faulthandler.dump_traceback_later(3600, exit=True)
    targets = TARGETS()
    for place, target in enumerate(targets):
        rng = random.Random(f"{seed} {place}")
        found: Counter[str] = Counter()
        start = time.perf_counter()
        count = number // len(targets) + (place < number % len(targets))
        with tempfile.TemporaryDirectory(dir=MEMORY) as name:
            folder = Path(name)
            for side, content in target.beside.items():
                (folder / side).write_bytes(content)
            path = folder / target.name
            for i in range(count):
                inner = content = target.content
                if target.pack is None:
                    inner = content = mutated(rng, content)
                elif i % 2:
                    inner = mutated(rng, inner)
                    content = target.pack(inner)
                else:
                    content = mutated(rng, target.pack(inner))
                path.write_bytes(content)
                before, resident = _peak(), _resident()
                verdict, shown = _judged(target, path, content, inner)
                peak = _peak()
                if peak > before and peak - resident > 10 * len(content) + ROOM:
                    verdict, shown = "large", f"{peak - resident} bytes"
                    with contextlib.suppress(OSError):
                        Path("/proc/self/clear_refs").write_text("5")
                found[verdict] += 1
                if verdict not in ("right", "refused"):
                    faults.append(
                        {"file": target.name, "number": i, "verdict": verdict, "what": shown}
                    )
                    if keep is not None:
                        keep.mkdir(parents=True, exist_ok=True)
                        (keep / f"{place}-{i}-{verdict}-{target.name}").write_bytes(content)
        how = "content or packed" if target.pack else "as it is"
        if target.beside:
            how = f"beside {', '.join(target.beside)}"
        spent = round(1e3 * (time.perf_counter() - start) / max(count, 1), 2)
        if target.by:
            how = f"{how}, for {target.by}"
        row = {"file": target.name, "mutated": how, "files": count}
        rows.append(row | {x: found[x] for x in VERDICTS} | {"ms each": spent})
    faulthandler.cancel_dump_traceback_later()
    return {"rows": rows, "faults": faults}
