"""Vector files come back as they were written, others are read right, and damage is named."""

import bz2
import decimal
import fractions
import gzip
import importlib
import importlib.util
import io
import json
import os
import pathlib
import re
import tempfile
import tracemalloc
import zipfile

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import jax
import numpy as np
import pytest

from jaxmeta.files import _blocks
from jaxmeta.files.vectors import (
    DuplicateWords,
    Vectors,
    as_vectors,
    read_vectors,
    to_gensim,
    write_vectors,
)

pytestmark = pytest.mark.skipif(
    jax.config.jax_enable_x64, reason="no arrays of JAX here; the 32-bit leg runs these"
)


def needs(name):
    absent = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(absent, reason=f"{name} is not installed")


SAFETENSORS = pytest.param(".safetensors", marks=needs("safetensors"))
TEXT = [".txt", ".vec", ".glove"]
PACKED = [f"{kind}{packing}" for kind in (".txt", ".bin") for packing in (".gz", ".bz2", ".zip")]
ALL = [*TEXT, ".bin", ".npz", ".npy", SAFETENSORS, *PACKED]
FLOATS = [np.float16, np.float32, np.float64]

SMALL = Vectors(("the", "dé", "x"), np.array([[0.5, -1.25], [3, 1e-3], [-0.0, 7e8]], np.float32))


def same(x, y):
    """Equal to the last bit."""
    assert x.words == y.words
    assert x.matrix.dtype == y.matrix.dtype
    assert x.matrix.shape == y.matrix.shape
    assert x.matrix.tobytes() == np.ascontiguousarray(y.matrix).tobytes()


@pytest.fixture
def file(tmp_path):
    """A function that writes a file and returns its path."""

    def write(content, name="v.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rejected(match, function, *arguments, error=ValueError, **settings):
    with pytest.raises(error, match=match):
        function(*arguments, **settings)


# Round trips

characters = st.characters(codec="utf-8", exclude_characters="\n")
anything = st.text(characters, min_size=1, max_size=8)
NUMBER_AT_END = re.compile(r"[ \t][+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")
allowed = {
    "text": lambda w: w[0] not in " \t" and w[-1] not in " \t" and not NUMBER_AT_END.search(w),
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


@pytest.mark.parametrize("suffix", [*TEXT, ".npz", ".npy", SAFETENSORS])
@pytest.mark.parametrize("dtype", FLOATS)
@hypothesis.given(data=st.data())
def test_round_trip(suffix, dtype, data):
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


@pytest.mark.parametrize("suffix", PACKED)
def test_packed_files_are_what_others_unpack(tmp_path, suffix):
    path, plain = tmp_path / f"v{suffix}", tmp_path / f"v.{suffix.split('.')[1]}"
    write_vectors(path, SMALL)
    write_vectors(plain, SMALL)
    if suffix.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            assert archive.namelist() == [plain.name]
            content = archive.read(plain.name)
    else:
        content = (gzip if suffix.endswith(".gz") else bz2).decompress(path.read_bytes())
    assert content == plain.read_bytes()
    first = path.read_bytes()
    write_vectors(path, SMALL)
    assert path.read_bytes() == first


def test_what_is_written(tmp_path):
    path = tmp_path / "v.txt"
    write_vectors(path, SMALL)
    assert path.read_text("utf-8") == "3 2\nthe 0.5 -1.25\ndé 3 0.001\nx -0 700000000\n"
    write_vectors(path, SMALL, format="glove")
    assert path.read_text("utf-8") == "the 0.5 -1.25\ndé 3 0.001\nx -0 700000000\n"
    write_vectors(path, SMALL, dtype=np.float64)
    assert "the 0.5 -1.25\n" in path.read_text("utf-8")
    path = tmp_path / "v.bin"
    write_vectors(path, SMALL)
    rows = [word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(*SMALL, strict=True)]
    assert path.read_bytes() == b"3 2\n" + b"".join(rows)
    path = tmp_path / "v.npz"
    write_vectors(path, SMALL)
    with np.load(path) as stored:
        assert stored["words"].tolist() == list(SMALL.words)
        np.testing.assert_array_equal(stored["vectors"], SMALL.matrix)


@pytest.mark.parametrize("dtype", FLOATS[:2])
def test_text_has_the_fewest_digits(tmp_path, dtype, rng):
    bits = rng.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), 5000, dtype=np.uint64)
    numbers = bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    numbers = np.concatenate([numbers[np.isfinite(numbers)], rng.normal(size=5000).astype(dtype)])
    write_vectors(path := tmp_path / "v.glove", (["w"], numbers[None]))
    text = path.read_text().split()[1:]
    for written, number in zip(text, numbers, strict=True):
        digits = len(decimal.Decimal(written).normalize().as_tuple().digits)
        least = decimal.Decimal(np.format_float_scientific(number)).normalize().as_tuple().digits
        assert digits == len(least), (written, number)


# Numbers

plain = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9)
pieces = st.text("0123456789", min_size=1, max_size=18)
some_numbers = st.one_of(
    plain.map(lambda x: f"{x:f}"),
    st.tuples(st.sampled_from(["", "-", "+"]), pieces, st.just("."), pieces).map("".join),
    st.tuples(st.sampled_from(["", "-"]), st.just("."), pieces).map("".join),
    st.tuples(pieces, st.just(".")).map("".join),
    st.tuples(pieces, st.sampled_from(["e-7", "E+3", "e5"])).map("".join),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["0", "-0", "0.0", "-0.0", "9007199254740993", "1" + "0" * 15, "." + "9" * 15]),
)


@hypothesis.settings(max_examples=300)
@hypothesis.given(numbers=st.lists(some_numbers, min_size=1, max_size=6))
def test_numbers_are_rounded_as_python_does(numbers):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "v.txt"
        path.write_text(f"1 {len(numbers)}\nw {' '.join(numbers)}\n")
        found = read_vectors(path, dtype=np.float64).matrix[0]
    assert found.tobytes() == np.array(list(map(float, numbers))).tobytes()


def nearest(text, dtype):
    """The number of a dtype nearest to a decimal, in exact arithmetic; ties to even."""
    exact, start = fractions.Fraction(text), dtype(float(text))
    near = [np.nextafter(start, dtype(-np.inf)), start, np.nextafter(start, dtype(np.inf))]
    integer = f"i{np.dtype(dtype).itemsize}"
    return min(
        near, key=lambda x: (abs(fractions.Fraction(float(x)) - exact), int(x.view(integer)) & 1)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_numbers_are_rounded_once(file, dtype, rng):
    # Next to the middle of two neighbours the nearest float64 is that middle.
    low = rng.normal(size=50).astype(dtype)
    with decimal.localcontext(prec=80):
        pairs = [(float(x), float(np.nextafter(x, dtype(9)))) for x in low]
        middle = [(decimal.Decimal(x) + decimal.Decimal(y)) / 2 for x, y in pairs]
        tiny = decimal.Decimal("1e-40")
        texts = [f"{m + side:f}" for m in middle for side in (-tiny, 0, tiny)]
    texts += ["7.038531e-26", "7.0385307e-26"]
    path = file(f"1 {len(texts)}\nw {' '.join(texts)}\n")
    found = read_vectors(path, dtype=dtype).matrix[0]
    expected = np.array([nearest(text, dtype) for text in texts])
    assert found.tobytes() == expected.tobytes()
    twice = np.array([dtype(float(text)) for text in texts])
    assert (found != twice).any()


def test_a_float32_whose_shortest_text_is_next_to_a_middle(tmp_path):
    # 7.038531e-26 is the shortest; rounded to float64 first, it would become the number below.
    given = Vectors(("w",), np.array([[7.0385307e-26]], np.float32))
    write_vectors(tmp_path / "v.txt", given)
    same(read_vectors(tmp_path / "v.txt"), given)


def test_many_numbers(tmp_path, rng):
    bits = rng.integers(0, 2**32, 40_000, dtype=np.uint32).view(np.float32)
    numbers = np.concatenate([bits[np.isfinite(bits)][:30_000], rng.normal(size=30_000)])
    given = Vectors(tuple(map(str, range(600))), numbers.astype(np.float32).reshape(600, 100))
    write_vectors(tmp_path / "v.txt", given)
    same(read_vectors(tmp_path / "v.txt"), given)


# Text as others write it

ROWS = ("a", "b"), [[1, 2.5], [-3, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "a 1 2.5\nb -3 0\n",
        "a 1 2.5\nb -3 0",
        "2 2\na 1 2.5\nb -3 0\n",
        "2 2\na 1.0 2.50 \nb -3.0 0.0 \n",
        "2 2\r\na 1 2.5\r\nb -3 0\r\n",
        "2 2 \na 1e0 25e-1  \nb -3. +0\n",
        "\N{ZERO WIDTH NO-BREAK SPACE}2 2\na 1 2.5\nb -3 0\n",
    ],
    ids=["glove", "no end", "header", "fasttext", "windows", "odd", "mark"],
)
@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_text_of_others(file, monkeypatch, text, block):
    monkeypatch.setattr(_blocks, "BLOCK", block)
    same(read_vectors(file(text)), Vectors(ROWS[0], np.array(ROWS[1], np.float32)))


def test_words_with_spaces(file):
    text = ". . . 1 2\n.. 3 4\nat name@domain.com 5 6\n2012 7 8\n\N{NO-BREAK SPACE} 9 10\n- 1 1\n"
    found = read_vectors(file(text))
    assert found.words == (". . .", "..", "at name@domain.com", "2012", "\N{NO-BREAK SPACE}", "-")
    assert found.matrix[:, 0].tolist() == [1, 3, 5, 7, 9, 1]


def test_headers(file):
    assert read_vectors(file("5 3\n6 4\n")).words == ("5", "6")
    assert read_vectors(file("2 1\n6 4\n7 4\n")).words == ("6", "7")
    assert read_vectors(file("2 1\n6 4\n7 4\n"), format="glove").words == ("2", "6", "7")
    rejected("line 1: got .*a header", read_vectors, file("a 1 2\n"), format="word2vec")
    rejected("line 1: got 0 3, expected rows", read_vectors, file("0 3\n"))


def test_given_formats(file, tmp_path):
    path = file("a 1 2\n", "v.data")
    assert read_vectors(path, format="glove").words == ("a",)
    for kind in ("bin", "npz", "npy", "word2vec"):
        write_vectors(tmp_path / "w.data", SMALL, format=kind)
        same(read_vectors(tmp_path / "w.data", format=kind), SMALL)


# Parts of files


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


# Word lists and metadata


def test_word_lists(tmp_path):
    np.save(tmp_path / "v.npy", np.eye(2))
    (tmp_path / "v.words.txt").write_text("a\r\nb\r\n")
    assert read_vectors(tmp_path / "v.npy").words == ("a", "b")
    assert read_vectors(tmp_path / "v.npy", words=["x", "y"]).words == ("x", "y")
    (tmp_path / "other").write_text("p\nq")
    assert read_vectors(tmp_path / "v.npy", words=tmp_path / "other").words == ("p", "q")
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.arange(4.0).reshape(2, 2)))
    assert read_vectors(tmp_path / "columns.npy", words=["a", "b"]).matrix.tolist() == [
        [0, 1],
        [2, 3],
    ]


def test_npz_of_others(tmp_path):
    path = tmp_path / "v.npz"
    by_columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.savez_compressed(path, words=np.array(["a", "bé"]), vectors=by_columns, more=np.eye(3))
    same(read_vectors(path), Vectors(("a", "bé"), by_columns))
    np.savez(path, words=np.array([b"a", "é".encode()]), vectors=np.eye(2, dtype=">f4"))
    same(read_vectors(path), Vectors(("a", "é"), np.eye(2, dtype=np.float32)))


@needs("safetensors")
def test_safetensors(tmp_path):
    from safetensors.numpy import load_file, save_file

    path = tmp_path / "v.safetensors"
    write_vectors(path, SMALL)
    assert list(load_file(path)) == ["vectors"]
    write_vectors(path, SMALL, words=tmp_path / "list.txt")
    assert (tmp_path / "list.txt").read_text("utf-8").split("\n") == [*SMALL.words, ""]
    rejected(r"no word list .*v\.words\.txt, .*pass words=", read_vectors, path)
    same(read_vectors(path, words=tmp_path / "list.txt"), SMALL)
    save_file({"embeddings": np.eye(2), "weights": np.ones(2)}, path)
    assert read_vectors(path, words=["a", "b"]).matrix.tolist() == [[1, 0], [0, 1]]
    save_file({"a": np.eye(2), "b": np.eye(2)}, path)
    rejected("got tensors .*expected one matrix", read_vectors, path, words=["a", "b"])
    save_file({"a": np.eye(2, dtype=np.int8)}, path)
    rejected("got dtype I8, expected float16", read_vectors, path, words=["a", "b"])
    save_file({"a": np.eye(3)}, path, {"words": json.dumps(["a"])})
    rejected("got 1 words, expected 3", read_vectors, path)
    path.write_bytes(path.read_bytes()[:-5])
    rejected("no whole safetensors file", read_vectors, path)


def test_packages_that_are_missing(tmp_path, monkeypatch):
    def absent(asked):
        raise ImportError(asked)

    monkeypatch.setattr(importlib, "import_module", absent)
    path = tmp_path / "v.safetensors"
    write_vectors(path, SMALL)  # needs none
    message = r"safetensors: .*pip install 'jaxmeta\[io\]'"
    rejected(message, read_vectors, path, error=ImportError)
    rejected(r"pip install 'jaxmeta\[gensim\]'", to_gensim, SMALL, error=ImportError)


# What is wrong with files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 3\nc 4 5\n", r"line 2 \(offset 6\): got 1 numbers, expected 2; remove or"),
        ("a 1 2\nb 3 4 5\n", r"line 2 \(offset 6\): got more than 2 numbers"),
        ("a 1 2\n\nc 4 5\n", r"line 2 \(offset 6\): got 0 numbers"),
        ("2 3\na 1 2\nb 3 4\n", r"line 2 \(offset 4\): got 2 numbers, expected 3"),
        ("2 2\na 1 2 3\nb 3 4 5\n", r"line 2 \(offset 4\): got more than 2 numbers"),
        ("3 2\na 1 2\nb 3 4\n", r"line 4: got 2 rows, expected 3, as line 1 says; it is cut"),
        ("1 2\na 1 2\nb 3 4\n", r"line 4: got 2 rows, expected 1"),
        ("3 2\n", r"line 2: got 0 rows, expected 3"),
        ("a 1 2\nb nan 3\n", r"line 2 \(offset 6\): got nan in column 0, expected finite"),
        ("a 1 2\nb 3 -inf\n", r"line 2 \(offset 6\): got -inf in column 1"),
        ("a 1 2\nb 3 1e999\n", r"line 2 \(offset 6\): got inf in column 1"),
        ("a 1 2\nb 3 1e39\n", r"line 2 .*got 1e\+39 in column 1, .*of float32; pass dtype=np.fl"),
        ("a 1 2\nb 3 4,5\n", r"line 2 \(offset 6\): got '4,5', expected a finite number"),
        ("a 1 2\nb 1.2.3 4\n", r"line 2 .*got '1\.2\.3'"),
        ("a 1 2\nb 1-2 4\n", r"line 2 .*got '1-2'"),
        ("a 1 2\nb 1_0 4\n", r"line 2 .*got '1_0'"),
        ("a 1 2\nb - 4\n", r"line 2 .*got '-'"),
        ("a 1 2\nb . 4\n", r"line 2 .*got '\.'"),
        ("2 2\na 1 2\nb 3  4\n", r"line 3 \(offset 10\): got more than 2 numbers or spaces"),
        ("a 1 2\nb  4\n", r"line 2 .*got '', expected a finite number"),
        ("a 1 2\n 3 4\n", r"line 2 \(offset 6\): got an empty word"),
        ("2 2\na\t1 2 3\nb\t4 5 6\n", r"line 2 .*got more than 2 numbers"),
        ("a\t1 2 3\nb\t4 5 6\n", r"line 1 .*got more than 2 numbers"),
        ("a\t1\t2\n", r"line 1: got .*expected a word and numbers"),
        ("some plain text\n", r"line 1: got .*expected a word and numbers"),
        ("", "got an empty file, expected vectors"),
        ("\n", "got an empty file"),
    ],
)
@pytest.mark.parametrize("block", [3, 1 << 18])
def test_wrong_text(file, monkeypatch, text, message, block):
    monkeypatch.setattr(_blocks, "BLOCK", block)
    path = file(text)
    rejected(rf"v\.txt:? ?.*{message}", read_vectors, path)
    path = file(gzip.compress(text.encode()), "v.txt.gz")
    rejected(rf"v\.txt\.gz:? ?.*{message}", read_vectors, path)


def test_offsets_are_those_of_the_file(file):
    path = file("2 2 \r\na 1 2 \r\nb 3 x \r\n")
    rejected(r"line 3 \(offset 14\): got 'x'", read_vectors, path)


def test_words_that_are_not_utf8(file, tmp_path):
    path = file(b"a 1\n\xe9t\xe9 2\n")
    message = r"line 2 \(offset 4\): got byte 0xe9 at place 0 .*pass errors='backslashreplace'"
    rejected(message, read_vectors, path)
    assert read_vectors(path, errors="backslashreplace").words == ("a", "\\xe9t\\xe9")
    assert read_vectors(path, errors="replace").words[1] == "\N{REPLACEMENT CHARACTER}t\ufffd"
    rejected("errors: got 'none'", read_vectors, path, errors="none")
    path = file(b"1 1\n\xe9 \0\0\0\0", "v.bin")
    rejected(r"offset 6: got byte 0xe9", read_vectors, path)
    np.save(tmp_path / "v.npy", np.eye(2))
    file(b"a\n\xe9\n", "v.words.txt")
    rejected(r"row 1, from 0: got byte 0xe9", read_vectors, tmp_path / "v.npy")


@pytest.mark.parametrize("length", [1, 3, 4, 6, 8, 12, 30, -2])
@pytest.mark.parametrize("block", [3, 1 << 18])
def test_truncated_binary(tmp_path, monkeypatch, length, block):
    write_vectors(tmp_path / "v.bin", SMALL)
    path = tmp_path / "cut.bin"
    path.write_bytes((tmp_path / "v.bin").read_bytes()[:length])
    monkeypatch.setattr(_blocks, "BLOCK", max(block, 4))
    rejected(r"cut\.bin(: offset \d+)?: got .*(fetch it again|pass format=)", read_vectors, path)


def test_wrong_binary(file):
    rejected("got an empty file", read_vectors, file(b"", "v.bin"))
    model = (793712314).to_bytes(4, "little") + bytes(50)
    rejected("of fastText's models take the .vec file", read_vectors, file(model, "v.bin"))
    rejected("pass format=", read_vectors, file("a 1 2\n", "v.bin"))
    row = b"a " + np.ones(2, "<f4").tobytes()
    rejected("offset 14: got more data", read_vectors, file(b"1 2\n" + row + b"b", "v.bin"))
    bad = b"a " + np.array([1, np.nan], "<f4").tobytes()
    rejected("offset 6: got nan in column 1", read_vectors, file(b"1 2\n" + bad, "v.bin"))
    assert read_vectors(file(b"1 2\n" + row, "v.bin")).words == ("a",)


def test_binary_without_spaces_is_given_up(file, monkeypatch):
    monkeypatch.setattr(_blocks, "LONGEST", 100)
    path = file(b"9 1\n" + b"x" * 2_000_000, "v.bin")
    rejected("offset 4: got 0 rows, and then its end or no word", read_vectors, path)
    path = file(b"x" * 2_000_000)
    rejected("bytes without a new line, expected text", read_vectors, path)


@pytest.mark.parametrize("suffix", [*PACKED, ".npz"])
@pytest.mark.parametrize("how", ["cut", "head", "middle"])
def test_damaged_files(tmp_path, rng, suffix, how):
    given = Vectors(tuple(map(str, range(500))), rng.normal(size=(500, 9)).astype(np.float32))
    path = tmp_path / f"v{suffix}"
    write_vectors(path, given)
    data = path.read_bytes()
    half = len(data) // 2
    damaged = {
        "cut": data[:half],
        "head": bytes(10) + data[10:],
        "middle": data[:half] + bytes(50) + data[half + 50 :],
    }
    path.write_bytes(damaged[how])
    rejected(r"v\..*: got .*truncated or damaged: fetch it again", read_vectors, path)


def test_archives_with_several_files(tmp_path):
    path = tmp_path / "v.txt.zip"
    for names, got in (((), "no file"), (("a.txt", "b.txt"), "several files")):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "a 1\n")
        rejected(rf"zip: got {got}, .*unpack the one", read_vectors, path)


def test_wrong_arrays(tmp_path, file):
    path = tmp_path / "v.npy"
    np.save(path, np.eye(3))
    rejected(r"got no word list .*v\.words\.txt", read_vectors, path)
    rejected("got 2 words, expected 3", read_vectors, path, words=["a", "b"])
    rejected("got 5 words, expected 3", read_vectors, path, words=list("abcde"))
    file("a\nb\n", "v.words.txt")
    rejected("got 2 words, expected 3, one for each row", read_vectors, path)
    file("a\n\nc\n", "v.words.txt")
    rejected("row 1, from 0: got an empty word", read_vectors, path)
    abc = {"words": ["a", "b", "c"]}
    np.save(path, np.diag([1, np.inf, 1]))
    rejected("row 1, from 0: got inf in column 1", read_vectors, path, **abc)
    np.save(path, np.eye(3) * 1e300)
    rejected("got 1e\\+300 .*dtype=np.float64", read_vectors, path, **abc, dtype=np.float32)
    for wrong, message in (
        (np.ones(3), r"got shape \(3,\), expected a matrix"),
        (np.ones((0, 3)), r"got shape \(0, 3\)"),
        (np.ones((3, 3), int), "got dtype int64, expected float16"),
    ):
        np.save(path, wrong)
        rejected(message, read_vectors, path, **abc)
    np.save(path, np.eye(3))
    path.write_bytes(path.read_bytes()[:-20])
    rejected("no whole .npy file", read_vectors, path, **abc)
    path.write_bytes(b"")
    rejected("no whole .npy file", read_vectors, path, **abc)
    path = tmp_path / "v.npz"
    np.savez(path, x=np.eye(2))
    rejected("got arrays x, expected words and vectors", read_vectors, path)
    np.savez(path, words=np.array(["a"]), vectors=np.eye(2))
    rejected("got 1 words, expected 2", read_vectors, path)
    np.savez(path, words=np.array(["a", "b", "c"]), vectors=np.eye(2))
    rejected("got 3 words, expected 2", read_vectors, path)
    np.savez(path, words=np.array(["a", "b"], object), vectors=np.eye(2))
    rejected(r"words: got dtype object, expected strings", read_vectors, path)
    np.savez(path, words=np.array(["a", "b"]), vectors=np.ones(2))
    rejected(r"got shape \(2,\), expected a matrix", read_vectors, path)


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


# What is wrong with vectors


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("v.txt", ["a", "b\nc"], r"words\[1\]: got 'b\\nc', expected words in one line"),
        ("v.bin", ["a", "b\nc"], r"words\[1\]"),
        ("v.npz", ["a", "b\nc"], r"words\[1\]"),
        ("v.npy", ["a", "b\nc"], r"words\[1\]"),
        ("v.safetensors", ["a", "b\nc"], r"words\[1\]"),
        ("v.txt", ["a", ""], r"words\[1\]: got '', expected .*not empty"),
        ("v.npz", ["a", ""], r"words\[1\]: got ''"),
        ("v.bin", ["a", "b c"], r"words\[1\]: got 'b c', .*without spaces; .*another format"),
        ("v.txt", ["a", "b 1"], r"words\[1\]: got 'b 1', .*not ending in white space"),
        ("v.txt", ["a", "b "], r"words\[1\]"),
        ("v.npz", ["a", "b\0"], r"words\[1\]: .*without NUL"),
        ("v.npy", ["a", "b\r"], r"words\[1\]: .*carriage return"),
        ("v.txt", ["a", "\ud800"], r"words\[1\]: got '\\ud800', expected words that UTF-8"),
        ("v.txt", ["a", "a"], r"words: got 'a' 2 times, expected every word once"),
        ("v.txt", ["a"], "got 1 words and 2 rows, expected one word for each row"),
        ("v.txt", ["a", 1], "words: got 1, expected strings"),
    ],
)
def test_words_that_cannot_be_written(tmp_path, name, words, message):
    (tmp_path / name).write_text("before")
    rejected(message, write_vectors, tmp_path / name, (words, np.eye(2, dtype=np.float32)))
    assert (tmp_path / name).read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_matrices_that_cannot_be_written(tmp_path):
    path, words = tmp_path / "v.bin", ("a", "b")
    wrong = np.array([[0, 1], [np.nan, 0]], np.float32)
    rejected("vectors: row 1, from 0: got nan in column 0", write_vectors, path, (words, wrong))
    rejected("float64, .*dtype=np.float32 to round", write_vectors, path, (words, np.eye(2)))
    huge = np.eye(2) * 1e300
    rejected("got 1e\\+300", write_vectors, path, (words, huge), dtype=np.float32)
    rejected(r"matrix: got shape \(2,\)", write_vectors, path, (words, np.ones(2)))
    rejected("matrix: got dtype int64", write_vectors, path, (words, np.eye(2, dtype=int)))
    rejected("words: got a file", write_vectors, path, SMALL, words=tmp_path / "list")
    assert not list(tmp_path.iterdir())
    write_vectors(path, (words, np.eye(2)), dtype=np.float32)
    write_vectors(path, (words, np.eye(2, dtype=np.float16)))
    same(read_vectors(path), Vectors(words, np.eye(2, dtype=np.float32)))


@pytest.mark.parametrize(
    "suffix", [".txt", ".txt.gz", ".txt.zip", ".bin", ".npz", ".npy", ".safetensors"]
)
def test_an_interruption_leaves_what_was_there(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(_blocks, "BLOCK", 8)
    path = tmp_path / f"v{suffix}"
    write_vectors(path, SMALL)
    before = {found.name: found.read_bytes() for found in tmp_path.iterdir()}

    def interrupt(_, done):
        if done > 0.5:  # some rows are written
            raise KeyboardInterrupt("now")

    other = Vectors(("new", "newer", "newest"), np.ones((3, 2), np.float32))
    rejected("now", write_vectors, path, other, progress=interrupt, error=KeyboardInterrupt)
    assert {found.name: found.read_bytes() for found in tmp_path.iterdir()} == before


@pytest.mark.parametrize("suffix", [".txt", ".bin", ".npz", ".npy", ".safetensors"])
def test_the_same_vectors_are_the_same_bytes_and_anyone_may_read_them(tmp_path, suffix):
    usual = tmp_path / "usual"
    usual.touch()
    found = []
    for name in ("first", "second"):
        path = tmp_path / f"{name}{suffix}"
        write_vectors(path, SMALL)
        assert path.stat().st_mode == usual.stat().st_mode
        found.append(path.read_bytes())
    assert found[0] == found[1]


def test_progress_of_writing(tmp_path, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK", 8)
    seen = []
    write_vectors(tmp_path / "v.txt", SMALL, progress=lambda *now: seen.append(now))
    assert seen == [("vectors", 0.0), ("vectors", 1 / 3), ("vectors", 2 / 3), ("vectors", 1.0)]


# Other libraries


class Holder:
    """Has the attributes it is given."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def test_as_vectors():
    words, matrix = SMALL
    keyed = Holder(index_to_key=list(words), vectors=matrix)
    model = Holder(tokens=words, embedding=matrix)
    rows = dict(zip(words, matrix, strict=True))
    for source in (SMALL, (list(words), matrix), keyed, Holder(wv=keyed), model, rows):
        same(as_vectors(source), SMALL)
    listed = as_vectors({"a": [1.0, 2.0], "b": (3.0, 4.0)})
    same(listed, Vectors(("a", "b"), np.array([[1.0, 2.0], [3.0, 4.0]])))


def test_quantised_models():
    table = np.array([[1, 2], [3, 4]], np.float32)
    model = Holder(
        tokens=["a", "b", "c"],
        embedding=table,
        token_mapping=np.array([1, 0, 1]),
        weights=np.array([1.0, 2.0, 0.5]),
    )
    expected = np.array([[3, 4], [2, 4], [1.5, 2]], np.float32)
    same(as_vectors(model), Vectors(("a", "b", "c"), expected))


def test_input_tables():
    table = np.arange(8, dtype=np.float32).reshape(4, 2)
    found = as_vectors(({"b": 3, "[PAD]": 0, "a": 1}, table))
    same(found, Vectors(("[PAD]", "a", "b"), table[[0, 1, 3]]))
    rejected("words: got rows 0 to 4, expected 0 to 3", as_vectors, ({"a": 0, "b": 4}, table))
    rejected("words: got rows -1 to 0", as_vectors, ({"a": 0, "b": -1}, table))


def test_what_is_no_vectors():
    for source in ("text", 3, [1, 2], np.eye(2), None):
        rejected("source: got a .*pass a pair", as_vectors, source, error=TypeError)
    rejected(r"vectors of lengths \[1, 2\]", as_vectors, {"a": [1.0], "b": [1.0, 2.0]})
    for source in ({}, ((), np.ones((0, 2)))):
        rejected("matrix: got shape", as_vectors, source)


@needs("gensim")
class TestGensim:
    """gensim's reader and writer, as a second opinion."""

    @pytest.fixture
    def keyed(self):
        from gensim.models import KeyedVectors

        return KeyedVectors

    @pytest.fixture
    def given(self, rng):
        words = tuple(f"wé{i}" for i in range(300))
        return Vectors(words, rng.normal(size=(300, 20)).astype(np.float32))

    # Without a header gensim leaves the file open.
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_reads_what_we_write(self, keyed, given, tmp_path):
        for name in ("v.txt", "v.bin", "v.txt.gz", "v.bin.bz2"):
            write_vectors(tmp_path / name, given)
            binary = ".bin" in name
            theirs = keyed.load_word2vec_format(str(tmp_path / name), binary=binary)
            same(as_vectors(theirs), given)
        write_vectors(tmp_path / "v.glove", given)
        theirs = keyed.load_word2vec_format(str(tmp_path / "v.glove"), no_header=True)
        same(as_vectors(theirs), given)

    def test_writes_what_we_read(self, given, tmp_path):
        theirs = to_gensim(given)
        for name in ("v.txt", "v.bin", "v.txt.gz"):
            theirs.save_word2vec_format(str(tmp_path / name), binary=".bin" in name)
            same(read_vectors(tmp_path / name), given)
        theirs.save_word2vec_format(str(tmp_path / "v.txt"), write_header=False)
        same(read_vectors(tmp_path / "v.txt"), given)

    @pytest.mark.parametrize("dtype", FLOATS)
    def test_to_gensim(self, keyed, given, dtype):
        theirs = to_gensim(Vectors(given.words, given.matrix.astype(dtype)))
        assert isinstance(theirs, keyed)
        assert theirs.vectors.dtype == dtype
        np.testing.assert_array_equal(theirs["wé7"], given.matrix[7].astype(dtype))
        same(as_vectors(theirs), Vectors(given.words, given.matrix.astype(dtype)))

    def test_models(self):
        from gensim.models import Word2Vec

        model = Word2Vec([["a", "b", "c"]] * 5, vector_size=4, min_count=1, workers=1, seed=0)
        found = as_vectors(model)
        assert set(found.words) == {"a", "b", "c"}
        np.testing.assert_array_equal(found.matrix[0], model.wv[found.words[0]])


# Real files


@pytest.fixture
def data():
    if "JAXMETA_DATA" not in os.environ:
        pytest.skip("JAXMETA_DATA is not set")
    return pathlib.Path(os.environ["JAXMETA_DATA"]) / "vectors"


def test_googlenews(data):
    found = read_vectors(data / "googlenews-26k-300d.bin")
    assert found.matrix.shape == (26_423, 300)
    assert found.matrix.dtype == np.float32
    norms = np.linalg.norm(found.matrix.astype(np.float64), axis=1)
    np.testing.assert_allclose(norms, 1, atol=300 * np.finfo(np.float32).eps)


def test_glove(data):
    path = data / "glove-100d-56k.txt.gz"
    found = read_vectors(path)
    assert found.matrix.shape == (55_155, 100)
    assert found.words[0] == "the"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            if i % 97 == 0:
                word, *numbers = line.rstrip("\n").split(" ")
                assert word == found.words[i]
                np.testing.assert_array_equal(found.matrix[i], np.array(numbers, np.float32))


def test_minilm(data):
    path = data / "minilm-input-22k-384d.npz"
    found = read_vectors(path)
    assert found.matrix.shape == (21_745, 384)
    assert found.matrix.dtype == np.float16
    with np.load(path) as stored:
        assert found.words == tuple(stored["words"].tolist())
        np.testing.assert_array_equal(found.matrix, stored["vectors"])
