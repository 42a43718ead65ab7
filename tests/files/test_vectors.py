"""Vector files come back as they were written, in whole and in part."""

import io
import pathlib
import re
import tempfile
import tracemalloc

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from vector_files import FLOATS, PACKED, SAFETENSORS, SMALL, TEXT, rejected, same

from jaxmeta.files import _blocks
from jaxmeta.files.vectors import DuplicateWords, Vectors, read_vectors, write_vectors

pytestmark = pytest.mark.one_leg


ALL = [*TEXT, ".bin", ".npz", ".npy", SAFETENSORS, *PACKED]

characters = st.characters(codec="utf-8", exclude_characters="\n")

anything = st.text(characters, min_size=1, max_size=8)

NUMBER_AFTER_SPACE = re.compile(r"[ \t][+-]?\.?[0-9]")

allowed = {
    "text": lambda w: "\r" not in w and w == w.strip(" \t") and not NUMBER_AFTER_SPACE.search(w),
    "bin": lambda w: " " not in w,
    "npz": lambda w: "\0" not in w,
    "list": lambda w: not w.endswith("\r"),
}


@st.composite
def some_vectors(draw, dtype, fits):
    words = draw(st.lists(anything.filter(fits), min_size=1, max_size=6, unique=True))
    shape = (len(words), draw(st.integers(1, 5)))
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=8 * np.dtype(dtype).itemsize)
    return Vectors(tuple(words), draw(hnp.arrays(dtype, shape, elements=numbers)))


def rule(suffix):
    if suffix in (".npy", ".safetensors"):
        return allowed["list"]
    return allowed["text" if suffix in TEXT else suffix[1:]]


@pytest.mark.filterwarnings("ignore:.* words have spaces inside")
@pytest.mark.parametrize("suffix", [*TEXT, ".npz", ".npy", SAFETENSORS])
@hypothesis.settings(max_examples=80)
@hypothesis.given(data=st.data())
def test_round_trip(suffix, data):
    dtype = data.draw(st.sampled_from(FLOATS))
    given = data.draw(some_vectors(dtype, rule(suffix)))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"v{suffix}"
        write_vectors(path, given)
        # Without a header, a row of two integers would be taken for one.
        form = "glove" if suffix == ".glove" else None
        same(read_vectors(path, dtype=dtype if suffix in TEXT else None, format=form), given)


@hypothesis.given(data=st.data())
def test_round_trip_of_binary(data):
    given = data.draw(some_vectors(np.float32, allowed["bin"]))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "v.bin"
        write_vectors(path, given)
        same(read_vectors(path), given)


@pytest.mark.parametrize("suffix", ALL)
def test_every_format(tmp_path, suffix):
    path = tmp_path / "deep" / f"v{suffix}"
    for given in (Vectors(("old",), np.ones((1, 1), np.float32)), SMALL):
        write_vectors(path, given)
        same(read_vectors(path), given)
    names = {path.name} | ({"v.words.txt"} if suffix == ".npy" else set())
    assert {found.name for found in path.parent.iterdir()} == names


def test_given_formats(file, tmp_path):
    path = file("a 1 2\n", "v.data")
    assert read_vectors(path, format="glove").words == ("a",)
    for kind in ("bin", "npz", "npy", "word2vec"):
        write_vectors(tmp_path / "w.data", SMALL, format=kind)
        same(read_vectors(tmp_path / "w.data", format=kind), SMALL)


@pytest.fixture
def repeated(file):
    return file("a 1\nb 2\na 3\nc 4\nd 5\nb 6\n")


def test_duplicates(repeated, tmp_path):
    with pytest.warns(DuplicateWords, match=r"v\.txt: 2 rows repeat a word .*the first was kept"):
        found = read_vectors(repeated)
    same(found, Vectors(("a", "b", "c", "d"), np.array([[1], [2], [4], [5]], np.float32)))
    np.savez(tmp_path / "v.npz", words=np.array(["a", "a"]), vectors=np.eye(2))
    with pytest.warns(DuplicateWords, match="1 rows"):
        assert read_vectors(tmp_path / "v.npz").matrix.tolist() == [[1, 0]]


def test_limit_counts_rows_of_the_file(repeated):
    assert read_vectors(repeated, limit=2).words == ("a", "b")
    with pytest.warns(DuplicateWords, match="1 rows"):
        assert read_vectors(repeated, limit=4).words == ("a", "b", "c")


def test_vocabulary(repeated):
    with pytest.warns(DuplicateWords, match="1 rows"):
        found = read_vectors(repeated, vocabulary=["d", "a", "absent"])
    assert found.words == ("a", "d")  # in the order of the file
    assert found.matrix.tolist() == [[1], [5]]
    with pytest.warns(DuplicateWords):
        assert read_vectors(repeated, vocabulary={"a", "d"}, limit=4).words == ("a",)
    # All are found before any comes again.
    assert read_vectors(repeated, vocabulary=("b", "a", "a")).words == ("a", "b")


@pytest.mark.parametrize("suffix", ALL)
@pytest.mark.parametrize("block", [64, 1 << 18])
def test_parts_of_every_format(tmp_path, monkeypatch, rng, suffix, block):
    words = tuple(f"w{i}" for i in range(50))
    given = Vectors(words, rng.integers(-99, 99, size=(50, 3)).astype(np.float32) / 8)
    write_vectors(tmp_path / f"v{suffix}", given)
    monkeypatch.setattr(_blocks, "BLOCK", block)
    seen = []
    progress = lambda stage, fraction: seen.append((stage, fraction))  # noqa: E731
    same(read_vectors(tmp_path / f"v{suffix}", progress=progress), given)
    assert {stage for stage, _ in seen} == {"vectors"}
    fractions_seen = [fraction for _, fraction in seen]
    assert fractions_seen == sorted(fractions_seen)
    assert fractions_seen[-1] == 1
    part = read_vectors(tmp_path / f"v{suffix}", limit=7)
    same(part, Vectors(words[:7], given.matrix[:7]))
    part = read_vectors(tmp_path / f"v{suffix}", vocabulary=["w40", "w3"], dtype=np.float64)
    same(part, Vectors(("w3", "w40"), given.matrix[[3, 40]].astype(np.float64)))


@pytest.mark.parametrize("suffix", [".txt", ".glove", ".bin"])
def test_what_is_beyond_the_limit_is_not_looked_at(tmp_path, suffix):
    path = tmp_path / f"v{suffix}"
    write_vectors(path, SMALL)
    data = path.read_bytes()
    path.write_bytes(data[:-6] + b"\n?\xff")
    assert read_vectors(path, limit=2).words == SMALL.words[:2]
    with pytest.raises(ValueError, match="v"):
        read_vectors(path)


def peak(function):
    """The most bytes that are held while a function runs, beside those held before."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".bin", ".npz", ".npy", SAFETENSORS])
def test_memory_grows_with_what_is_kept(tmp_path, monkeypatch, rng, suffix):
    monkeypatch.setattr(_blocks, "BLOCK", 1 << 12)
    peaks = []
    for n in (2_000, 16_000):
        words = [f"w{i}" for i in range(n)]
        path = tmp_path / f"{n}{suffix}"
        settings = {}
        if suffix in (".npy", ".safetensors"):  # words in the metadata are read whole
            settings["words"] = tmp_path / f"{n}.list"
        matrix = rng.integers(-9, 9, size=(n, 20)).astype(np.float32)
        write_vectors(path, (words, matrix), **settings)
        wanted = {"w5", f"w{n - 1}"}
        for asked in ({"limit": 50}, {"vocabulary": wanted}):
            peaks.append(peak(lambda p=path, a=asked, s=settings: read_vectors(p, **a, **s)))
    small, large = max(peaks[:2]), max(peaks[2:])
    assert large < 1.5 * small + 20_000
    assert large < 16_000 * 20 * 4 / 2


def test_memory_of_whole_files(tmp_path, monkeypatch, rng):
    monkeypatch.setattr(_blocks, "BLOCK", 1 << 14)
    peaks, words = [], [f"{i:05}" for i in range(20_000)]
    for n in (5_000, 20_000):
        write_vectors(tmp_path / "v.txt", (words[:n], rng.integers(-9, 9, size=(n, 50)) / 2))
        peaks.append(peak(lambda: read_vectors(tmp_path / "v.txt")))
    # A quarter of room for the matrix; for each word a string, its place and that in a tuple.
    assert peaks[1] - peaks[0] < 15_000 * (1.25 * 50 * 4 + 54 + 120 + 8)


def test_only_the_start_of_a_stream_is_read(tmp_path, monkeypatch):
    class Endless(io.RawIOBase):
        read_so_far = 0

        def read(self, size=-1):
            assert size > 0
            self.read_so_far += size
            return (b"a 1 2\nb 3 4\n" * size)[:size]

    stream = Endless()
    monkeypatch.setattr(_blocks, "opened", lambda *_: iter([("v", stream)]))
    path = tmp_path / "v.txt"
    path.write_bytes(b"")
    assert read_vectors(path, limit=2).words == ("a", "b")
    assert read_vectors(path, vocabulary=["b"]).words == ("b",)
    assert stream.read_so_far <= 2 * _blocks.BLOCK


def test_wrong_settings(file, hooked):
    path = file("a 1\nb 2\n")
    rejected("limit: got 0, expected at least 1", read_vectors, path, limit=0)
    if not hooked:  # the annotation is checked first
        rejected("limit: got a float", read_vectors, path, limit=1.5, error=TypeError)
    rejected("2 words of which none is in .*v.txt", read_vectors, path, vocabulary=["c", "d"])
    rejected("or raise limit, which is 1", read_vectors, path, vocabulary=["b"], limit=1)
    rejected("vocabulary: got 'a'", read_vectors, path, vocabulary="a")
    rejected("vocabulary: got \\[\\]", read_vectors, path, vocabulary=[])
    rejected("words: got some", read_vectors, path, words=["a", "b"])
    rejected("dtype: got dtype int32", read_vectors, path, dtype=np.int32)
    for function, more in ((read_vectors, ()), (write_vectors, (SMALL,))):
        rejected(r"v\.doc: got .*'\.doc'.*pass format=", function, path.with_suffix(".doc"), *more)
        rejected(r"pass format=", function, path.with_suffix(".gz"), *more)
        rejected(r"got format 'xml'", function, path, *more, format="xml")
        rejected("got .gz, .*unpack it", function, path.with_suffix(".npz.gz"), *more)
    with pytest.raises(FileNotFoundError):
        read_vectors(path.with_name("absent.txt"))


# At a prompt


def test_vectors_at_a_prompt(rng):
    words = tuple(f"w{i}" for i in range(5000))
    given = Vectors(words, rng.normal(size=(5000, 300)).astype(np.float32))
    assert repr(given) == "Vectors(5,000 words x 300 dimensions, float32: 'w0', 'w1', 'w2', ...)"
    assert len(given) == 5000
    assert "w7" in given
    assert "W7" not in given
    assert np.shares_memory(given["w7"], given.matrix[7])
    own, matrix = given
    assert own is words
    assert matrix is given.matrix
    with pytest.raises(KeyError, match="got 'W7', expected one of the 5,000 words; check case"):
        given["W7"]
    with pytest.raises(KeyError, match="rows by number are those of"):
        given[0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_most_similar_words(rng, dtype):
    words, scale = tuple(f"w{i}" for i in range(3000)), 1e200 if dtype == "float64" else 1
    matrix = (scale * rng.normal(size=(3000, 30))).astype(dtype)
    matrix[5] = 0
    found = Vectors(words, matrix).most_similar("w2", 7)
    exact = matrix.astype(float) / scale
    lengths = np.linalg.norm(exact, axis=1)
    cosines = exact @ exact[2] / np.where(lengths == 0, 1, lengths) / lengths[2]
    expected = np.argsort(-cosines)[1:8]
    assert [word for word, _ in found] == [words[i] for i in expected]
    np.testing.assert_allclose([x for _, x in found], cosines[expected], atol=1e-14)
    assert len(Vectors(words[:3], matrix[:3]).most_similar("w0")) == 2
