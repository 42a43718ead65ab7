"""Words are read alike from every kind of file, and vocabularies are in order."""

import bz2
import gzip
import itertools
import os
import pathlib
import zipfile

import numpy as np
import pytest

from jaxmeta.text import (
    Corpus,
    Vocabulary,
    build_vocabulary,
    count_windows,
    given_vocabulary,
    intersection_vocabulary,
    lower_words,
    union_vocabulary,
)
from jaxmeta.text import (
    corpus as module,
)

pytestmark = pytest.mark.one_leg

WORDS = ("a", "b", "dé", "x", "yyyy")


def pack(folder, texts, kind):
    """The texts as files of a kind; what is given to Corpus."""
    match kind:
        case "folder":
            (folder / "deeper").mkdir()
            (folder / "0").write_text(texts[0])
            (folder / "deeper" / "1").write_text(texts[1])
            return str(folder)
        case "pattern":
            for number, text in enumerate(texts):
                (folder / f"{number}.txt").write_text(text)
            (folder / "other").write_text("not meant")
            return folder / "*.txt"
        case ".zip":
            with zipfile.ZipFile(folder / "texts.ZIP", "w", zipfile.ZIP_DEFLATED) as archive:
                for number, text in enumerate(texts):
                    archive.writestr(f"folder/{number}", text)
                archive.writestr("folder/", "")
            return folder / "texts.ZIP"
        case _:
            compress = {".gz": gzip.compress, ".bz2": bz2.compress}[kind]
            for number, text in enumerate(texts):
                (folder / f"{number}{kind}").write_bytes(compress(text.encode()))
            return [folder / f"{number}{kind}" for number in range(len(texts))]


@pytest.mark.parametrize("kind", [".gz", ".bz2", ".zip", "folder", "pattern"])
def test_every_kind_of_file_gives_the_same(tmp_path, file, rng, monkeypatch, kind):
    monkeypatch.setattr(module, "PIECE", 100)
    texts = [" ".join(rng.choice(WORDS, 100)) for _ in range(2)]
    plain = [file(text, f"plain{i}") for i, text in enumerate(texts)]
    folder = tmp_path / "packed"
    folder.mkdir()
    packed = Corpus(pack(folder, texts, kind))
    expected, found = build_vocabulary(Corpus(plain)), build_vocabulary(packed)
    assert found.words == expected.words
    assert found.counts.tolist() == expected.counts.tolist()
    one, other = (count_windows(corpus, found).whole for corpus in (packed, Corpus(plain)))
    assert all((x != y).nnz == 0 for x, y in zip(one, other, strict=True))


def test_files_come_in_order(tmp_path, file):
    for name in ("b", "a/2", "a/1", "c"):
        file(name, name)
    named = [path.relative_to(tmp_path).as_posix() for path in module.paths_of(tmp_path)]
    assert named == ["a/1", "a/2", "b", "c"]


def test_what_is_not_whole_yet_is_no_text(tmp_path, file):
    for name in ("a.txt", "a.0123abcd.part.txt", "a.0123abcd.part", "b.part.txt", "deep/b.txt"):
        file("word", name)
    for given in (tmp_path, tmp_path / "**"):
        named = [path.relative_to(tmp_path).as_posix() for path in module.paths_of(given)]
        assert named == ["a.txt", "b.part.txt", "deep/b.txt"]
    assert build_vocabulary(Corpus(tmp_path / "a.0123abcd.part.txt")).tokens == 1


def test_a_name_that_looks_like_a_pattern(file):
    assert build_vocabulary(Corpus(file("a b", "text[1].txt"))).tokens == 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "UTF8"])
def test_encodings(file, monkeypatch, encoding):
    # A mark of the byte order is no part of the first word, however small the pieces.
    text = "né à été" if encoding == "latin-1" else "né à été Жук"
    for piece in (1, 3, 1000):
        monkeypatch.setattr(module, "PIECE", piece)
        found = build_vocabulary(Corpus(file(text.encode(encoding)), encoding=encoding))
        assert set(found.words) == set(text.split())
    marked = file("né".encode("utf-8-sig"))
    assert build_vocabulary(Corpus(marked)).words == ("né",)


def test_all_white_space_is_white_space(file, monkeypatch):
    words = [f"w{i}" for i in range(8)]
    spaces = [" ", "\t", "\r\n", "\n\n", "\u00a0", "\u3000", "\u2028", "\x1c"]
    text = "".join(itertools.chain(*zip(words, spaces, strict=True)))
    for piece in range(1, 40):
        monkeypatch.setattr(module, "PIECE", piece)
        assert set(build_vocabulary(Corpus(file(text))).words) == set(words)


def test_lower_words():
    found = lower_words("Don't — DON\u2019T 'quote' rock'n'roll it's_me; Ångström 3rd x2, ß.")
    assert found == [
        *("don't", "don't", "quote", "rock'n'roll", "it's", "me", "ångström", "3rd", "x2", "ß")
    ]


def test_tokenisers_see_lines_or_pieces(file, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 10)
    seen = []

    def tokenise(text):
        seen.append(text)
        yield from text.split()

    path = file("one two\nthree four five\n\nsix\n")
    for lines in (True, False):
        seen.clear()
        corpus = Corpus(path, tokenise=tokenise, lines_are_documents=lines)
        assert build_vocabulary(corpus).tokens == 6
        assert lines == (not any("\n" in text for text in seen))
        assert "".join(seen) == path.read_text().replace("\n", "" if lines else "\n")


def test_progress(file):
    paths = [file(gzip.compress(b"a b " * 10), "1.gz"), file("a b c", "2")]
    calls = []
    report = lambda *call: calls.append(call)  # noqa: E731
    vocabulary = build_vocabulary(Corpus(paths), progress=report)
    count_windows(Corpus(paths), vocabulary, progress=report)
    for stage in ("vocabulary", "counts"):
        fractions = [fraction for name, fraction in calls if name == stage]
        assert len(fractions) >= 3
        assert fractions == sorted(fractions)
        assert fractions[0] > 0
        assert fractions[-1] == 1
    assert [name for name, _ in calls] == sorted((name for name, _ in calls), reverse=True)


def test_vocabulary_order(file):
    corpus = Corpus(file("b a c b a d é c b\n"))
    found = build_vocabulary(corpus)
    assert found.words == ("b", "a", "c", "d", "é")
    assert found.counts.tolist() == [3, 2, 2, 1, 1]
    assert found.counts.dtype == np.int64
    assert found.tokens == 9
    cut = build_vocabulary(corpus, size=2)
    assert cut.words == ("b", "a")
    assert cut.tokens == 9
    assert build_vocabulary(corpus, min_count=2).words == ("b", "a", "c")


def test_union_and_intersection():
    x = Vocabulary(("c", "a", "b"), np.array([50, 30, 20]), 100)
    y = Vocabulary(("b", "d", "a"), np.array([5, 4, 1]), 10)
    union = union_vocabulary([x, y])
    assert union.words == ("b", "c", "a", "d")  # 0.7, 0.5, 0.4 and 0.4
    assert union.counts.tolist() == [25, 50, 31, 4]
    assert union.tokens == 110
    assert union_vocabulary([x, y], size=1).words == ("b",)
    both = intersection_vocabulary([x, y])
    assert both.words == ("b", "a")
    assert both.counts.tolist() == [25, 31]
    assert both.tokens == 110
    assert intersection_vocabulary([x]).words == x.words


def test_ties_of_frequencies_are_ties():
    # 1/10 + 2/10 is not 3/10 in floating point.
    x = Vocabulary(("b", "a"), np.array([1, 3]), 10)
    y = Vocabulary(("b",), np.array([2]), 10)
    assert union_vocabulary([x, y]).words == ("a", "b")
    x = Vocabulary(("a", "b"), np.array([1, 3]), 10)
    y = Vocabulary(("a",), np.array([2]), 10)
    assert union_vocabulary([x, y]).words == ("a", "b")


def test_given_vocabulary():
    found = given_vocabulary(["z", "a"])
    assert found.words == ("z", "a")
    assert found.counts.tolist() == [0, 0]
    assert found.tokens == 0
    assert union_vocabulary([found]).words == ("a", "z")


def test_files_that_are_not_there(rejected, tmp_path):
    missing = r"path: got .*, where there is no file, expected .*; check the spelling"
    (tmp_path / "folder").mkdir()
    for path in ("absent", "*.txt", "folder"):
        corpus = Corpus(tmp_path / path)
        rejected(rf"{missing}", build_vocabulary, corpus, error=FileNotFoundError)
    rejected(missing, build_vocabulary, Corpus([]), error=FileNotFoundError)


@pytest.mark.parametrize("content", [b"", b" \n \n"], ids=["empty", "blank"])
@pytest.mark.parametrize("lines", [True, False])
def test_files_without_words(rejected, file, content, lines):
    paths = [file("a b"), file(content, "blank")]
    corpus = Corpus(paths, lines_are_documents=lines)
    message = r"blank: got no word, expected text; leave the file out"
    rejected(message, build_vocabulary, corpus)
    rejected(message, count_windows, corpus, given_vocabulary(["a", "b"]))


def test_an_archive_without_files(rejected, tmp_path):
    path = tmp_path / "none.zip"
    with zipfile.ZipFile(path, "w"):
        pass
    rejected(r"none\.zip: got no word", build_vocabulary, Corpus(path))


def test_binary_files(rejected, file, monkeypatch):
    rejected(r"text.txt: got a NUL .*binary", build_vocabulary, Corpus(file(b"a b\0c")))
    monkeypatch.setattr(module, "LONGEST", 100)
    message = r"got 101 characters without white space before offset 103, .*binary"
    rejected(message, build_vocabulary, Corpus(file("a " + "x" * 101)))
    assert build_vocabulary(Corpus(file("a " + "x" * 100))).tokens == 2


@pytest.mark.parametrize("piece", [1, 4, 1000])
def test_wrong_encodings(rejected, file, monkeypatch, piece):
    monkeypatch.setattr(module, "PIECE", piece)
    path = file("çà et là".encode() + "été".encode("latin-1"))
    message = r"text.txt: got byte 0xe9 at offset 11, expected text in utf-8; pass encoding="
    rejected(message, build_vocabulary, Corpus(path))
    cut = Corpus(file("un été".encode()[:-1]))
    rejected("got byte 0xc3 at offset 6", build_vocabulary, cut)
    marked = Corpus(file("un ".encode("utf-8-sig") + b"\xff"))
    rejected("got byte 0xff at offset 6", build_vocabulary, marked)
    for name in ("utf-9", "hex"):
        rejected(f"encoding: got '{name}', expected one of text", Corpus, "x", encoding=name)
    rejected(
        "text.txt: got UTF-16 stream .*, expected text in utf-16; pass encoding=",
        build_vocabulary, Corpus(file(b"without a mark"), encoding="utf-16"),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [".gz", ".bz2", ".zip"])
@pytest.mark.parametrize("how", ["cut", "head", "middle", "text"])
def test_damaged_files(rejected, tmp_path, rng, kind, how):
    (tmp_path / "good").mkdir()
    text = " ".join(map(str, rng.integers(0, 10**9, 2000)))
    path = pack(tmp_path / "good", [text], kind)
    path = path[0] if isinstance(path, list) else path
    data = path.read_bytes()
    half = len(data) // 2
    damaged = tmp_path / f"damaged{kind}"
    damaged.write_bytes(
        {
            "cut": data[:half],
            "head": bytes(10) + data[10:],
            "middle": data[:half] + bytes(50) + data[half + 50 :],
            "text": text.encode(),
        }[how]
    )
    message = rf"damaged{kind}.*: got data .*truncated or damaged: fetch it again"
    rejected(message, build_vocabulary, Corpus(damaged))


CENTRAL, LOCAL = b"PK\x01\x02", b"PK\x03\x04"


@pytest.mark.parametrize(
    ("offset", "value"), [(8, 1), (10, 99), (42, 255)], ids=["encrypted", "method", "offset"]
)
def test_archives_that_cannot_be_unpacked(rejected, tmp_path, offset, value):
    path = pack(tmp_path, ["a b c " * 50], ".zip")
    data = bytearray(path.read_bytes())
    for mark, place in ((CENTRAL, offset), (LOCAL, offset - 2)):
        if place < 30:
            data[data.index(mark) + place] = value
    data[data.index(CENTRAL) + offset] = value
    path.write_bytes(data)
    rejected(r"texts\.ZIP.*: got data .*damaged: fetch it again", build_vocabulary, Corpus(path))


def test_empty_documents_take_no_room(file):
    """As many places as a window has, after each, would be 300 million."""
    corpus = Corpus(file("\n" * 1_000_000 + "a b\n\na b"), lines_are_documents=True)
    tokens = [each for *_, each in module.read_tokens(corpus, 300, "counts", None)]
    assert sum(map(len, tokens)) == 4 + 2 * 300
    many = Corpus(file("a\n" * 20_000), lines_are_documents=True)
    sizes = [len(each) for *_, each in module.read_tokens(many, 300, "counts", None)]
    assert sum(sizes) == 20_000 * 301 + 300
    assert max(sizes) < module.PLACES + 302


def test_wrong_vocabularies(rejected, file):
    corpus = Corpus(file("a b b c c c"))
    x, y = given_vocabulary(["a", "b"]), given_vocabulary(["c", "d"])
    few = "size: got 3, expected 1 to 2; the corpus, of words that occur at least 2 times, has 2"
    rejected(few, build_vocabulary, corpus, size=3, min_count=2)
    rejected("size: got 0, expected 1 to 3", build_vocabulary, corpus, size=0)
    rejected("min_count: got 0", build_vocabulary, corpus, min_count=0)
    rejected("min_count: got 4, expected at most 3; no word", build_vocabulary, corpus, min_count=4)
    rejected("size: got 5, expected 1 to 4; the union has 4", union_vocabulary, [x, y], size=5)
    rejected("got no word common to all 2, .*union_vocabulary", intersection_vocabulary, [x, y])
    rejected(
        "size: got 3, expected 1 to 2; the intersection", intersection_vocabulary, [x, x], size=3
    )
    for join in (union_vocabulary, intersection_vocabulary):
        rejected("vocabularies: got none, expected a list", join, [])
        rejected("vocabularies: got one, expected a list", join, x)
    rejected("words: got 'a' 2 times, expected every word once", given_vocabulary, ["a", "b", "a"])
    for word in ("", "a b", " a", "a\n"):
        rejected("expected words without white space", given_vocabulary, ["a", word])
    rejected("words: got \\[\\], expected a list", given_vocabulary, [])
    rejected("words: got 'ab', expected a list", given_vocabulary, "ab")


@pytest.mark.slow
@pytest.mark.skipif("JAXMETA_DATA" not in os.environ, reason="JAXMETA_DATA is not set")
def test_the_news_corpus():
    path = pathlib.Path(os.environ["JAXMETA_DATA"]) / "corpora" / "news.txt.gz"
    vocabulary = build_vocabulary(Corpus(path, lines_are_documents=True), size=1000)
    assert vocabulary.tokens == pytest.approx(6.4e6, rel=0.01)
    assert vocabulary.words[0] == "the"
