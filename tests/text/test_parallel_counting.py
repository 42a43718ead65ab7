"""Counts that processes share out are those of one process, to the last integer."""

import bz2
import codecs
import functools
import gzip
import io
import itertools
import multiprocessing
import os
import pathlib
import signal
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from jaxmeta.text import (
    Corpus,
    Split,
    _pairs,
    _parallel,
    build_vocabulary,
    contiguous_parts,
    count_windows,
    given_vocabulary,
    load_counts,
    lower_words,
    random_blocks,
    save_counts,
)
from jaxmeta.text import (
    corpus as reading,
)
from jaxmeta.text.counting import from_arrays

pytestmark = pytest.mark.one_leg

KNOWN = ("dé", "a", "b")
SPACES = (" ", "  ", "\n", " \n\n", "\r\n", "\u3000", "\x1c", "\x85", "\t \n ")


def shared_out(
    corpus, vocabulary, *, window=5, unknown="keep", split=None, workers=3, progress=None
):
    """Counts by the tasks that processes run, here in threads."""
    counting = _parallel.Counting(corpus, vocabulary.words, window, unknown, split)
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(1) as executor:
        folder = pathlib.Path(made)
        names = _parallel.count_in_folder(counting, folder, executor, workers, progress)
        # What is not needed any more is gone, but for what the last tasks added up.
        assert not list(folder.glob("*.codes"))
        arrays = {name: np.load(folder / f"{name}.npy") for name in names}
        assert {path.stem for path in folder.glob("*.npy")} == set(names)
    return from_arrays(arrays)


def assert_same(x, y):
    """Not one integer may differ, nor how it is stored."""
    assert x.words == y.words
    assert len(x.nodes) == len(y.nodes)
    for ours, theirs in zip(itertools.chain(*x.nodes), itertools.chain(*y.nodes), strict=True):
        assert ours.shape == theirs.shape
        assert ours.has_canonical_format
        for field in ("data", "indices", "indptr"):
            a, b = getattr(ours, field), getattr(theirs, field)
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@st.composite
def texts(draw):
    """A text of known and unknown words, with white space of all kinds, or none at its ends."""
    words = draw(st.lists(st.sampled_from((*KNOWN, "x", "yyyyyy")), min_size=1, max_size=20))
    spaces = draw(st.lists(st.sampled_from(SPACES), min_size=len(words), max_size=len(words)))
    before = draw(st.sampled_from(("", "\n", "\ufeff")))
    text = before + "".join(itertools.chain(*zip(words, spaces, strict=True)))
    return text[:-1] if draw(st.booleans()) else text


@st.composite
def splits(draw, tokens=None):
    """No split, blocks of each size, or runs of equal length."""
    parts = draw(st.sampled_from((1, 2, 4, 8)))
    size, seed = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    kinds = [None, random_blocks(seed, size, parts)]
    return draw(st.sampled_from([*kinds, contiguous_parts(tokens, parts)] if tokens else kinds))


@hypothesis.settings(max_examples=40)
@hypothesis.given(data=st.data())
def test_counts_are_those_of_one_process(data):
    many = data.draw(st.lists(texts(), min_size=1, max_size=4))
    # Runs of equal length are of one text.
    split = data.draw(splits(max(2, len(many[0].split())) if len(many) == 1 else None))
    small = st.integers(1, 8)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for number, text in enumerate(many):
            (pathlib.Path(folder) / f"{number}.txt").write_text(text, encoding="utf-8", newline="")
        patch.setattr(reading, "PIECE", data.draw(small))
        patch.setattr(_pairs, "CHUNK", data.draw(small))
        patch.setattr(reading, "PLACES", data.draw(small))
        patch.setattr(_parallel, "GROUPS", data.draw(small))
        patch.setattr(_parallel, "LARGEST", data.draw(small))
        patch.setattr(_parallel, "TOGETHER", data.draw(st.integers(2, 4)))
        corpus = Corpus(folder, lines_are_documents=data.draw(st.booleans()))
        arguments = corpus, given_vocabulary(KNOWN)
        settings = {
            "window": data.draw(st.integers(1, 6)),
            "unknown": data.draw(st.sampled_from(["keep", "skip"])),
            "split": split,
        }
        try:
            expected = count_windows(*arguments, **settings)
        except ValueError as error:
            # Of several halves or files any may be the first to be refused.
            kinds = ["no pair of words", "of which none is in the corpus"]
            (kind,) = (kind for kind in kinds if kind in str(error))
            with pytest.raises(ValueError, match=kind):
                shared_out(*arguments, **settings)
        else:
            assert_same(shared_out(*arguments, **settings), expected)


@hypothesis.given(
    words=st.lists(st.sampled_from(("a", "bé", "\udcff", "x" * 9, "\ufeff", "漢字")), max_size=30),
    spaces=st.lists(st.sampled_from((*SPACES, "")), min_size=30, max_size=30),
    piece=st.integers(1, 6),
    pieces=st.integers(1, 4),
    encoding=st.sampled_from(("utf-8", "cp1252", "utf-16", "shift-jis")),
)
def test_ranges_hold_the_pieces_of_the_whole(words, spaces, piece, pieces, encoding):
    text = "".join(itertools.chain(*zip(words, spaces, strict=False)))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PIECE", piece)
        path = pathlib.Path(folder) / "text"
        path.write_bytes(text.encode(encoding, "ignore"))
        given = []
        corpus = Corpus(path, tokenise=lambda text: given.append(text) or [text], encoding=encoding)
        list(reading.read_range(corpus, reading.Range(path), 0))
        whole, given[:] = list(given), []
        ranges = reading.ranges_of(path, piece * pieces, encoding)
        assert [r.start for r in ranges[1:]] == [r.stop for r in ranges[:-1]]
        assert (ranges[0].start, ranges[-1].stop) == (0, None)
        if encoding in ("utf-16", "shift-jis"):
            assert len(ranges) == 1
        for place in ranges:
            list(reading.read_range(corpus, place, 0))
        assert given == whole


def test_long_text_is_cut(file):
    path = file("word " * 1000)
    ranges = reading.ranges_of(path, 100, "utf-8")
    assert [place.start for place in ranges] == list(range(0, 5000, 100))
    assert len(reading.ranges_of(path, 5000, "utf-8")) == 1
    # A word that is longer than a range is in one.
    long = file("a " + "b" * 300 + " c")
    assert [place.start for place in reading.ranges_of(long, 100, "utf-8")] == [0, 2]


@pytest.fixture
def small(monkeypatch):
    """Text is cut after some words."""
    monkeypatch.setattr(reading, "PIECE", 64)
    monkeypatch.setattr(_parallel, "LARGEST", 3)
    monkeypatch.setattr(_parallel, "TOGETHER", 3)


def packed(kind, content):
    """Content in a file of a kind."""
    if kind == ".gz":
        return gzip.compress(content)
    if kind == ".bz2":
        return bz2.compress(content)
    if kind == ".zip":
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w") as archive:
            archive.writestr("folder/one", content)
            archive.writestr("two", content[::-1])
        return written.getvalue()
    return content


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("documents", "unknown", "parts"), [(False, "keep", 8), (True, "skip", 4), (True, "keep", 1)]
)
def test_many_files_of_all_kinds(tmp_path, rng, documents, unknown, parts):
    for number, kind in enumerate((".txt", ".gz", ".bz2", ".zip", "", ".txt")):
        lines = rng.choice(["a", "b", "c", "x", "\n", "\n\n"], int(rng.integers(1, 300)))
        path = tmp_path / f"{number % 3}" / f"{number}{kind}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(packed(kind, " ".join(["a", *lines]).encode()))
    for number in range(20):
        (tmp_path / f"small{number}").write_text("b a c"[: 1 + number % 5])
    arguments = Corpus(tmp_path, lines_are_documents=documents), given_vocabulary(["b", "a", "c"])
    settings = {"window": 7, "unknown": unknown, "split": random_blocks(3, 4, parts)}
    expected = count_windows(*arguments, **settings)
    said = []
    progress = lambda stage, fraction: said.append((stage, fraction))  # noqa: E731
    assert_same(shared_out(*arguments, **settings, progress=progress), expected)
    assert_same(shared_out(*arguments, **settings, workers=1), expected)
    stages, fractions = zip(*said, strict=True)
    assert set(stages) == {"counts"}
    assert list(fractions) == sorted(fractions)
    assert len(set(fractions)) > 10
    assert fractions[-1] == 1


@pytest.mark.usefixtures("small")
def test_one_line_without_known_words_for_long(file):
    # Whole groups are without a known word, and a window goes beyond a group.
    tokens = ["a", "b", *["x"] * 60, "b", *["x"] * 30, "a", "a"]
    arguments = Corpus(file(" ".join(tokens))), given_vocabulary(["a", "b"])
    settings = {"window": 35, "split": contiguous_parts(len(tokens), 2)}
    for unknown in ("keep", "skip"):
        if unknown == "skip":
            settings["split"] = random_blocks(0, 1)
        expected = count_windows(*arguments, **settings, unknown=unknown)
        assert_same(shared_out(*arguments, **settings, unknown=unknown), expected)


@pytest.mark.usefixtures("small")
def test_lines_that_end_where_a_range_starts(file):
    # Ranges are cut at each place of a line in turn, and so between its last word and its end.
    path = file(("a " * 31 + " \nbb\n") * 300)
    arguments = Corpus(path, lines_are_documents=True), given_vocabulary(["a", "bb"])
    counts = shared_out(*arguments, window=2)
    assert_same(counts, count_windows(*arguments, window=2))
    assert [x.toarray().tolist() for x in counts.whole] == [
        [[300 * pairs, 0], [0, 0]] for pairs in (30, 29)
    ]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("encoding", "mark"), [("utf-8", codecs.BOM_UTF8), ("latin-1", b""), ("utf-16", b"")]
)
def test_encodings(file, encoding, mark):
    path = file(mark + " ".join(["Été", "dÉ", "L'été", "a\xa0dé"] * 100).encode(encoding))
    corpus = Corpus(path, tokenise=lower_words, encoding=encoding)
    vocabulary = build_vocabulary(corpus)
    settings = {"split": random_blocks(0, 7, 4)}
    assert_same(
        shared_out(corpus, vocabulary, **settings), count_windows(corpus, vocabulary, **settings)
    )


@pytest.mark.usefixtures("small")
def test_errors_are_those_of_one_process(rejected, file):
    words = given_vocabulary(["a", "b"])
    good, bad = "a b " * 200, b"a b " * 100 + b"\xff " + b"a b " * 100
    split = Split(4, functools.partial(labels_beyond, 4))
    for match, content, settings in (
        (r"text.txt: got byte 0xff at offset 400, expected text in utf-8", bad, {}),
        (r"text.txt: got a NUL among its first", good + "\0", {}),
        (r"text.txt: got no word, expected text", " \n" * 200, {}),
        ("got 2 words of which none is in the corpus", "c " * 200, {}),
        (r"no pair of words in part\(2, [01]\)", good, {"split": random_blocks(0)}),
        ("split: got .* expected 0 to 3 for each of", good, {"split": split}),
        ("tokens: got 9, .* which has more", good, {"split": contiguous_parts(9)}),
    ):
        corpus = Corpus(file(content))
        for count in (count_windows, shared_out):
            rejected(match, count, corpus, words, **settings)
    several = Corpus([file(good, name) for name in ("one", "two")])
    for count in (count_windows, shared_out):
        split = contiguous_parts(9999)
        rejected(
            "split: got one and two, expected a corpus of one", count, several, words, split=split
        )


def labels_beyond(number, _):
    return functools.partial(np.full_like, fill_value=number)


def test_processes(tmp_path, file, rng, monkeypatch):
    """Real ones, that share neither memory nor what is set here."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(reading, "PIECE", 1 << 10)
    corpus = Corpus(file(" ".join(rng.choice(["a", "b", "c"], 20_000)), "corpus/text"))
    words = given_vocabulary(["a", "b"])
    split = random_blocks(1, 9, 8)
    one = count_windows(corpus, words, split=split)
    two = count_windows(corpus, words, split=split, workers=2)
    assert_same(two, one)
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]  # nothing is left
    save_counts(tmp_path / "counts.npz", two)
    assert_same(load_counts(tmp_path / "counts.npz"), one)


def test_a_process_that_dies(rejected, file):
    # The text is a program, which ends the process that evaluates it.
    corpus = Corpus(file("__import__('os')._exit(1)"), tokenise=eval)
    match = "workers: got a process that was killed or could not start"
    rejected(match, count_windows, corpus, given_vocabulary(["a"]), workers=2, error=RuntimeError)


def test_ctrl_c_ends_all(file, monkeypatch):
    monkeypatch.setattr(reading, "PIECE", 1 << 10)
    corpus = Corpus(file("a b " * 20_000))
    words, said = given_vocabulary(["a", "b"]), []

    def press(stage, fraction):
        said.append((stage, fraction))
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        count_windows(corpus, words, workers=2, progress=press)
    assert len(said) == 1
    assert not multiprocessing.active_children()


def test_what_cannot_be_sent(rejected, file):
    words = given_vocabulary(["a"])
    path = file("a a a a")
    corpus = Corpus(path, tokenise=lambda text: text.split())
    do = "define them at the top of a module"
    rejected(f"tokenise: got .*lambda.*; {do}", count_windows, corpus, words, workers=2)
    split = Split(2, lambda _: lambda i: i % 2)
    rejected(f"split: got .*; {do}", count_windows, Corpus(path), words, split=split, workers=2)
    rejected("workers: got 0, expected at least 1", count_windows, corpus, words, workers=0)
