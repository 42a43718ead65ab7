"""Merging files: the same as by arrays, and nothing left behind when it fails."""

import tracemalloc

import numpy as np
import pytest

from jaxmeta import Vectors, align, concatenate, merge_files, read_vectors, write_vectors
from jaxmeta.files import _blocks

pytestmark = pytest.mark.one_leg

FIRST = Vectors(("a", "b", "c", "d"), np.arange(8, dtype=np.float32).reshape(4, 2) / 7)
SECOND = Vectors(("d", "é", "b", "a"), -np.arange(12, dtype=np.float32).reshape(4, 3) / 3)
BY_SOURCE, BY_DIMENSION = (0.7, 1.3), (np.array([0.1, 0.3]), np.array([1.0, -2.0, 0.0]))


@pytest.fixture
def paths(tmp_path):
    found = [tmp_path / "first.txt", tmp_path / "second.npz"]
    for path, source in zip(found, (FIRST, SECOND), strict=True):
        write_vectors(path, source)
    return found


@pytest.mark.parametrize("block", [24, 1 << 18])  # a row at a time, and all
@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "glove", "bin", "npz", "npy", "safetensors"])
@pytest.mark.parametrize("vocabulary", ["intersection", "union"])
@pytest.mark.parametrize("weights", [None, BY_SOURCE, BY_DIMENSION])
def test_as_by_arrays(paths, monkeypatch, weights, vocabulary, suffix, block):
    pytest.importorskip("safetensors")
    monkeypatch.setattr(_blocks, "BLOCK", block)
    out = paths[0].with_name(f"out.{suffix}")
    coverage = merge_files(paths, out, weights=weights, vocabulary=vocabulary)
    whole = align((FIRST, SECOND), vocabulary=vocabulary, names=[str(path) for path in paths])
    found = read_vectors(out)
    assert found.words == whole.words
    np.testing.assert_array_equal(found.matrix, concatenate(whole.sources, weights), strict=True)
    assert coverage == whole.coverage


def test_dtypes(tmp_path):
    paths = [tmp_path / "half.npy", tmp_path / "double.npy"]
    third = SECOND.matrix.astype(np.float64) / 3
    write_vectors(paths[0], FIRST, dtype=np.float16)
    write_vectors(paths[1], (SECOND.words, third))
    out = tmp_path / "out.npy"
    merge_files(paths[:1], out)
    half = FIRST.matrix.astype(np.float16)
    np.testing.assert_array_equal(np.load(out), half.astype(np.float32), strict=True)
    merge_files(paths, out, weights=(1.0, 0.1))
    expected = np.append(half[[0, 1, 3]].astype(np.float64), 0.1 * third[[3, 2, 0]], axis=1)
    np.testing.assert_array_equal(np.load(out), expected, strict=True)
    merge_files(paths, out, weights=(1.0, 0.1), dtype=np.float32)
    np.testing.assert_array_equal(np.load(out), expected.astype(np.float32), strict=True)


def test_progress(paths):
    seen = []
    merge_files(paths, paths[0].with_name("out.npy"), progress=lambda *now: seen.append(now))
    assert seen == [("read", 0.0), ("read", 0.5), ("read", 1.0), ("vectors", 0.0), ("vectors", 1.0)]


def test_memory_is_that_of_the_sources(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK", 1 << 14)
    words = [f"w{i}" for i in range(2_000)]
    paths = [tmp_path / "first.npy", tmp_path / "second.npy"]
    for path in paths:
        write_vectors(path, (words, rng.normal(size=(2_000, 200))))
    tracemalloc.start()
    try:
        merge_files(paths, tmp_path / "out.npy", weights=(2.0, 3.0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    sources = 2 * 2_000 * 200 * 8
    assert sources < peak < 1.25 * sources  # by arrays it is three times as much


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"paths": []}, r"^paths: got \[\], expected a file per source"),
        ({"weights": (1.0,)}, "^weights: got 1 entries, expected 2, one per source"),
        ({"weights": (1.0, np.ones(2))}, r"^weights\[1\]: got shape \(2,\), expected \(\) or \(3,"),
        ({"weights": (1.0, np.nan)}, "^vectors: row 0, from 0: got nan in column 2"),
        ({"vocabulary": "all"}, "^vocabulary: got 'all', expected one of 'intersection', 'union'"),
        ({"out": "out.doc"}, r"out\.doc: got a name ending in \['\.doc'\]"),
        ({"out": "out.bin", "dtype": np.float64}, "^dtype: got float64, expected float32 in .bin"),
    ],
)
def test_bad_calls(paths, hooked, change, message):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
    before = {path: path.read_bytes() for path in paths[0].parent.iterdir()}
    settings = {"paths": paths, "out": "out.txt", **change}
    out = paths[0].with_name(settings.pop("out"))
    with pytest.raises(ValueError, match=message):
        merge_files(out=out, **settings)
    assert {path: path.read_bytes() for path in paths[0].parent.iterdir()} == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", r"second\.txt: got an empty file"),
        (b"a 1 2\nb 1\n", r"second\.txt: line 2 \(offset 6\): got 1 numbers, expected 2"),
        (b"a 1 2\nb 1 nan\n", r"second\.txt: line 2 \(offset 6\): got nan in column 1"),
        (b"a 1 2\n\xff 1 2\n", r"second\.txt: line 2 \(offset 6\): got byte 0xff .*expected UTF-8"),
        (b"3 2\na 1 2\nb 1 2\n", r"second\.txt: line 4: got 2 rows, expected 3, as line 1 says"),
        (b"x 1 2\ny 1 2\n", r"no word that all have \(.*first.txt has 'a'.*second.txt has 'x'"),
    ],
)
def test_bad_files_leave_nothing_behind(paths, text, message):
    wrong = paths[1].with_suffix(".txt")
    wrong.write_bytes(text)
    before = {path: path.read_bytes() for path in wrong.parent.iterdir()}
    with pytest.raises(ValueError, match=message) as raised:
        merge_files([paths[0], wrong], wrong.with_name("out.npy"))
    assert "; " in str(raised.value)  # what to do
    assert {path: path.read_bytes() for path in wrong.parent.iterdir()} == before
