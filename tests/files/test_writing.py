"""Vectors are written whole or not at all, and taken from and given to other libraries."""

import numpy as np
import pytest
from vector_files import FLOATS, SMALL, needs, rejected, same

from jaxmeta.files import _blocks
from jaxmeta.files.vectors import Vectors, as_vectors, read_vectors, to_gensim, write_vectors

pytestmark = pytest.mark.one_leg


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
    below = tmp_path / "absent" / "v.bin"
    rejected("float64, .*dtype=np.float32 to round", write_vectors, below, (words, np.eye(2)))
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
    for source in (3, [1, 2], np.eye(2), None):
        rejected("source: got a .*pass a pair", as_vectors, source, error=TypeError)
    rejected("source: got 'text', .*read a file", as_vectors, "text", error=TypeError)
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
