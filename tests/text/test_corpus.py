"""Counts are exact to the last integer, however text comes and however it is cut up."""

import bz2
import collections
import gzip
import itertools
import os
import pathlib
import tempfile
import tracemalloc
import zipfile
import zlib

import hypothesis
import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from scipy.sparse import csr_array

from jaxmeta.released import released_window
from jaxmeta.text import corpus as module
from jaxmeta.text import counting
from jaxmeta.text.corpus import (
    Corpus,
    Vocabulary,
    build_vocabulary,
    given_vocabulary,
    intersection_vocabulary,
    lower_words,
    union_vocabulary,
)
from jaxmeta.text.counting import (
    Counts,
    contiguous_halves,
    count_windows,
    inverse_distance,
    load_counts,
    random_blocks,
    save_counts,
    symmetric_window,
)

pytestmark = pytest.mark.skipif(
    jax.config.jax_enable_x64, reason="no arrays of JAX here; the 32-bit leg runs these"
)

WORDS = ("a", "b", "dé", "x", "yyyy")
KNOWN = ("dé", "a", "b")


def oracle(texts, words, window, unknown, boundaries, halves=None):
    """Pairs by part, offset and words, from texts that are lists of lines that are lists of words.

    `halves` gives the half of a position in a text with a given number.
    """
    pairs = collections.Counter()
    for number, lines in enumerate(texts):
        position, documents = 0, []
        for line in lines:
            document = []
            for word in line:
                if word in words or unknown == "keep":
                    half = None if halves is None else halves(number, position)
                    document.append((word, half))
                    position += 1
            documents.append(document)
        if not boundaries:
            documents = [[place for document in documents for place in document]]
        for document in documents:
            for i, (a, half_a) in enumerate(document):
                for j, (b, half_b) in enumerate(document):
                    if 1 <= j - i <= window and a in words and b in words:
                        same = half_a is not None and half_a == half_b
                        part = ("first", "second")[half_a] if same else "across"
                        pairs[part, j - i, a, b] += 1
    return pairs


def as_pairs(counts):
    """The same from counts."""
    pairs = collections.Counter()
    for part in ("first", "second", "across"):
        for offset, x in enumerate(getattr(counts, part), start=1):
            assert x.shape == (len(counts.words),) * 2
            assert x.dtype == np.int64
            assert x.indices.dtype == np.int32
            assert x.has_canonical_format
            assert (x.data > 0).all()
            x = x.tocoo()
            for a, b, n in zip(*x.coords, x.data, strict=True):
                pairs[part, offset, counts.words[a], counts.words[b]] = int(n)
    return pairs


def equal(x, y):
    return x.words == y.words and as_pairs(x) == as_pairs(y)


def coins(seed, size, name, blocks=100):
    """Halves of a text by position, tossed one by one."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    tossed = [rng.random() < 0.5 for _ in range(blocks)]
    return lambda position: (position // size % 2) ^ tossed[position // (2 * size)]


def write(folder, texts):
    """One file per text."""
    paths = []
    for number, lines in enumerate(texts):
        paths.append(pathlib.Path(folder) / f"{number}.txt")
        paths[-1].write_text("\n".join(" ".join(line) for line in lines), encoding="utf-8")
    return paths


@pytest.fixture
def file(tmp_path):
    """A function that writes a file and returns its path."""

    def write(content, name="text.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


lines_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=8), min_size=1, max_size=6)
some_texts = st.lists(
    lines_of_words.filter(lambda lines: set(itertools.chain(*lines)) & set(KNOWN)),
    min_size=1,
    max_size=3,
)


@hypothesis.settings(max_examples=300)
@hypothesis.given(
    texts=some_texts,
    window=st.integers(1, 4),
    unknown=st.sampled_from(["keep", "skip"]),
    boundaries=st.booleans(),
    split=st.none() | st.tuples(st.integers(0, 3), st.integers(1, 5)),
    piece=st.integers(1, 12),
    chunk=st.integers(1, 12),
)
def test_counts_are_exact(texts, window, unknown, boundaries, split, piece, chunk):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        paths = write(folder, texts)
        patch.setattr(module, "PIECE", piece)
        patch.setattr(counting, "CHUNK", chunk)
        halves = blocks = None
        if split is not None:
            blocks = random_blocks(*split)
            by_text = [coins(*split, path.name) for path in paths]
            halves = lambda number, position: by_text[number](position)  # noqa: E731
        expected = oracle(texts, KNOWN, window, unknown, boundaries, halves)
        count = lambda: count_windows(  # noqa: E731
            Corpus(paths, lines_are_documents=boundaries),
            given_vocabulary(KNOWN),
            window=window,
            unknown=unknown,
            split=blocks,
        )
        parts = {part for part, *_ in expected}
        if split is not None and not {"first", "second"} <= parts:
            with pytest.raises(ValueError, match="split: got no pair of words in the"):
                count()
            return
        assert as_pairs(count()) == expected


def test_pairs_across_many_chunks(file, rng, monkeypatch):
    # Sums of sums of sums: enough chunks for several levels, and not a power of two of them.
    monkeypatch.setattr(module, "PIECE", 64)
    monkeypatch.setattr(counting, "CHUNK", 50)
    tokens = rng.choice(WORDS, 3000).tolist()
    path = file(" ".join(tokens))
    by_position = coins(7, 10, path.name, 200)
    expected = oracle([[tokens]], KNOWN, 3, "keep", False, lambda _, i: by_position(i))
    counts = count_windows(
        Corpus(path), given_vocabulary(KNOWN), window=3, split=random_blocks(7, size=10)
    )
    assert as_pairs(counts) == expected


@pytest.mark.parametrize(("size", "split"), [(70_000, False), (40_000, True)])
def test_large_vocabularies_need_large_keys(file, rng, size, split):
    assert (3 if split else 1) * size**2 > 2**32
    words = [f"w{i}" for i in range(size)]
    # The last words have the largest keys.
    tokens = [words[i] for i in rng.choice([0, 1, size - 2, size - 1], 200)]
    path = file(" ".join(tokens))
    by_position = coins(0, 5, path.name)
    halves = (lambda _, i: by_position(i)) if split else None
    expected = oracle([[tokens]], set(words), 2, "keep", False, halves)
    counts = count_windows(
        Corpus(path),
        given_vocabulary(words),
        window=2,
        split=random_blocks(0, size=5) if split else None,
    )
    assert as_pairs(counts) == expected


def test_files_add_up(tmp_path, rng):
    texts = [[rng.choice(WORDS, 60).tolist()] for _ in range(3)]
    paths = write(tmp_path, texts)
    count = lambda path: count_windows(  # noqa: E731
        Corpus(path), given_vocabulary(KNOWN), split=random_blocks(0, size=4)
    )
    one, two, three = map(count, paths)
    assert equal(one + two + three, count(paths))


def test_parts_add_up_to_the_whole(file, rng):
    corpus = Corpus(file(" ".join(rng.choice(WORDS, 300))))
    vocabulary = build_vocabulary(corpus)
    plain = count_windows(corpus, vocabulary)
    parts = count_windows(corpus, vocabulary, split=random_blocks(0, size=7))
    for x, y, z in zip(plain.whole, parts.whole, plain.across, strict=True):
        assert (x != y).nnz == 0
        assert (x != z).nnz == 0
    assert not any(x.nnz for x in plain.first + plain.second)


@pytest.mark.parametrize("split", [contiguous_halves(11), lambda _: lambda i: i >= 5])
def test_any_split_will_do(file, split):
    tokens = list("abaababbbab")
    counts = count_windows(
        Corpus(file(" ".join(tokens))), given_vocabulary(["a", "b"]), split=split
    )
    assert as_pairs(counts) == oracle([[tokens]], "ab", 5, "keep", False, lambda _, i: int(i >= 5))


def test_files_of_one_name_start_anew(tmp_path, file):
    # Positions count from the start of each file, also when two have the same name.
    paths = [file("a b a b b a", "one/text"), file("b a a b a", "two/text")]
    texts = [[path.read_text().split()] for path in paths]
    by_position = coins(1, 2, "text")
    counts = count_windows(
        Corpus(tmp_path), given_vocabulary(["a", "b"]), split=random_blocks(1, size=2)
    )
    assert as_pairs(counts) == oracle(texts, "ab", 5, "keep", False, lambda _, i: by_position(i))


@hypothesis.given(
    seed=st.integers(0, 100),
    size=st.integers(1, 9),
    cuts=st.lists(st.integers(1, 199), max_size=5, unique=True),
)
def test_blocks_do_not_depend_on_how_they_are_asked_for(seed, size, cuts):
    halves = random_blocks(seed, size)("name")
    positions = np.arange(200)
    whole = halves(positions)
    cut = [halves(x) for x in np.split(positions, sorted(cuts))]
    np.testing.assert_array_equal(np.concatenate(cut), whole)
    by_position = coins(seed, size, "name")
    np.testing.assert_array_equal(whole, [by_position(i) for i in positions])
    # Halves of whole pairs of blocks are of equal size.
    pairs = 200 // (2 * size) * 2 * size
    assert whole[:pairs].sum() == pairs / 2


def test_blocks_differ_between_files_and_seeds():
    positions = np.arange(100_000)
    halves = [random_blocks(s)(name)(positions) for s in (0, 1) for name in ("x", "y")]
    for a, b in itertools.combinations(halves, 2):
        assert 0.2 < np.mean(a == b) < 0.8


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
    assert equal(count_windows(packed, found), count_windows(Corpus(plain), expected))


def test_files_come_in_order(tmp_path, file):
    for name in ("b", "a/2", "a/1", "c"):
        file(name, name)
    named = [path.relative_to(tmp_path).as_posix() for path in module.paths_of(tmp_path)]
    assert named == ["a/1", "a/2", "b", "c"]


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


def test_memory_does_not_grow_with_the_text(file, rng, monkeypatch):
    monkeypatch.setattr(module, "PIECE", 1 << 12)
    monkeypatch.setattr(counting, "CHUNK", 1 << 10)
    words = [f"word{i}" for i in range(20)]
    split = random_blocks(0, size=100)

    def peak(tokens):
        corpus = Corpus(file(" ".join(rng.choice(words, tokens))))
        tracemalloc.start()
        try:
            count_windows(corpus, build_vocabulary(corpus), window=2, split=split)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1000)  # what is made once is not counted
    assert peak(160_000) < 1.2 * peak(20_000)


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


@pytest.fixture
def counted(file, rng):
    """Tokens, and counts of them."""
    tokens = rng.choice(WORDS, 200).tolist()
    corpus = Corpus(file(" ".join(tokens)))
    split = random_blocks(0, size=20)
    return tokens, count_windows(corpus, given_vocabulary(KNOWN), window=6, split=split)


def near(tokens, weight):
    """Sums over pairs of places of a weight of their signed distance."""
    x = np.zeros((len(KNOWN), len(KNOWN)))
    for i, a in enumerate(tokens):
        for j, b in enumerate(tokens):
            if a in KNOWN and b in KNOWN:
                x[KNOWN.index(a), KNOWN.index(b)] += weight(j - i)
    return x


def test_windows(counted):
    tokens, counts = counted
    plain = symmetric_window(counts.whole)
    assert plain.dtype == np.int64
    assert isinstance(plain, csr_array)
    np.testing.assert_array_equal(plain.toarray(), near(tokens, lambda d: 1 <= abs(d) <= 6))

    weighted = symmetric_window(counts.whole, weights=inverse_distance(6))
    assert weighted.dtype == np.float64
    expected = near(tokens, lambda d: 1 / abs(d) if 1 <= abs(d) <= 6 else 0)
    np.testing.assert_allclose(weighted.toarray(), expected, rtol=1e-12)

    released = released_window(counts.whole)
    assert released.dtype == np.int64
    assert isinstance(released, csr_array)
    np.testing.assert_array_equal(
        released.toarray(), near(tokens, lambda d: d != 0 and -6 <= d <= 5)
    )
    one = released_window(counts.whole[:1])
    np.testing.assert_array_equal(one.toarray(), near(tokens, lambda d: d == -1))


def test_save_and_load(tmp_path, counted):
    _, counts = counted
    path = tmp_path / "deep" / "counts.npz"
    save_counts(path, counts)
    assert equal(load_counts(path), counts)
    assert [file.name for file in path.parent.iterdir()] == ["counts.npz"]


def test_what_is_no_counts_is_not_loaded(tmp_path, file, counted):
    _, counts = counted
    path = tmp_path / "counts.npz"
    save_counts(path, counts)
    content = path.read_bytes()
    np.savez(tmp_path / "foreign.npz", x=np.arange(3))
    np.savez(tmp_path / "words.npz", words=np.arange(3))
    np.save(tmp_path / "array.npy", np.arange(3))
    names = [file(content[:length], f"cut{length}.npz") for length in (0, 100, len(content) - 100)]
    names += [tmp_path / name for name in ("foreign.npz", "words.npz", "array.npy")]
    for name in [*names, file("some text", "text")]:
        with pytest.raises(ValueError, match=rf"{name.name}: got .*save_counts wrote; count again"):
            load_counts(name)
    with pytest.raises(FileNotFoundError):
        load_counts(tmp_path / "absent.npz")


def rejected(match, function, *arguments, error=ValueError, **settings):
    with pytest.raises(error, match=match):
        function(*arguments, **settings)


def test_files_that_are_not_there(tmp_path):
    missing = r"path: got .*, where there is no file, expected .*; check the spelling"
    (tmp_path / "folder").mkdir()
    for path in ("absent", "*.txt", "folder"):
        corpus = Corpus(tmp_path / path)
        rejected(rf"{missing}", build_vocabulary, corpus, error=FileNotFoundError)
    rejected(missing, build_vocabulary, Corpus([]), error=FileNotFoundError)


@pytest.mark.parametrize("content", [b"", b" \n \n"], ids=["empty", "blank"])
@pytest.mark.parametrize("lines", [True, False])
def test_files_without_words(file, content, lines):
    paths = [file("a b"), file(content, "blank")]
    corpus = Corpus(paths, lines_are_documents=lines)
    message = r"blank: got no word, expected text; leave the file out"
    rejected(message, build_vocabulary, corpus)
    rejected(message, count_windows, corpus, given_vocabulary(["a", "b"]))


def test_an_archive_without_files(tmp_path):
    path = tmp_path / "none.zip"
    with zipfile.ZipFile(path, "w"):
        pass
    rejected(r"none\.zip: got no word", build_vocabulary, Corpus(path))


def test_binary_files(file, monkeypatch):
    rejected(r"text.txt: got a NUL .*binary", build_vocabulary, Corpus(file(b"a b\0c")))
    monkeypatch.setattr(module, "LONGEST", 100)
    message = r"got 101 characters without white space before offset 103, .*binary"
    rejected(message, build_vocabulary, Corpus(file("a " + "x" * 101)))
    assert build_vocabulary(Corpus(file("a " + "x" * 100))).tokens == 2


@pytest.mark.parametrize("piece", [1, 4, 1000])
def test_wrong_encodings(file, monkeypatch, piece):
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
def test_damaged_files(tmp_path, rng, kind, how):
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


def test_wrong_vocabularies(file):
    corpus = Corpus(file("a b b c c c"))
    x, y = given_vocabulary(["a", "b"]), given_vocabulary(["c", "d"])
    few = "size: got 3, expected at most 2; the corpus has 2 words that occur at least 2 times"
    rejected(few, build_vocabulary, corpus, size=3, min_count=2)
    rejected("size: got 0, expected at least 1", build_vocabulary, corpus, size=0)
    rejected("min_count: got 0", build_vocabulary, corpus, min_count=0)
    rejected("min_count: got 4, expected at most 3; no word", build_vocabulary, corpus, min_count=4)
    rejected("size: got 5, expected at most 4; there are 4", union_vocabulary, [x, y], size=5)
    rejected("got no word common to all 2, .*union_vocabulary", intersection_vocabulary, [x, y])
    rejected("size: got 3, expected at most 2", intersection_vocabulary, [x, x], size=3)
    for join in (union_vocabulary, intersection_vocabulary):
        rejected("vocabularies: got none, expected a list", join, [])
        rejected("vocabularies: got one, expected a list", join, x)
    rejected("words: got 'a' 2 times, expected every word once", given_vocabulary, ["a", "b", "a"])
    for word in ("", "a b", " a", "a\n"):
        rejected("expected words without white space", given_vocabulary, ["a", word])
    rejected("words: got \\[\\], expected a list", given_vocabulary, [])
    rejected("words: got 'ab', expected a list", given_vocabulary, "ab")


def test_wrong_settings_of_counts(file):
    corpus, vocabulary = Corpus(file("a b b a")), given_vocabulary(["a", "b"])
    rejected("window: got 0, expected at least 1", count_windows, corpus, vocabulary, window=0)
    rejected('expected "keep" or "skip"', count_windows, corpus, vocabulary, unknown="drop")
    nowhere = "got 1 words of which none is in the corpus"
    for unknown in ("keep", "skip"):
        rejected(nowhere, count_windows, corpus, given_vocabulary(["z"]), unknown=unknown)
    half = "split: got no pair of words in the (first|second) half"
    rejected(half, count_windows, corpus, vocabulary, split=random_blocks(0))
    rejected(
        "tokens: got 3, .* has more", count_windows, corpus, vocabulary, split=contiguous_halves(3)
    )
    for halves in (lambda i: i, lambda i: i[1:] * 0, lambda _: 0):
        split = lambda _, halves=halves: halves  # noqa: E731
        rejected(
            "expected 0 or 1 for each of .* positions",
            count_windows,
            corpus,
            vocabulary,
            split=split,
        )
    rejected("size: got 0", random_blocks, 0, size=0)
    rejected("seed: got -1", random_blocks, -1)
    rejected("tokens: got 1", contiguous_halves, 1)
    split = contiguous_halves(9)
    split("a.txt")(np.arange(9))
    split("a.txt")  # as in a second pass
    rejected("split: got a.txt and b.txt, expected a corpus of one file", split, "b.txt")


def test_counts_that_do_not_add_up(file):
    corpus = Corpus(file("a b b a"))
    counts = count_windows(corpus, given_vocabulary(["a", "b"]))
    other = count_windows(corpus, given_vocabulary(["b", "a"]))
    narrow = count_windows(corpus, given_vocabulary(["a", "b"]), window=2)
    rejected("expected the same words in the same order", lambda: counts + other)
    rejected("got windows 5 and 2, expected the same", lambda: counts + narrow)
    with pytest.raises(TypeError):
        counts + 1


def test_wrong_offsets(counted):
    _, counts = counted
    for function in (symmetric_window, released_window):
        rejected("offsets: got a Counts, .*counts.whole", function, counts)
        rejected("offsets: got a csr_array, expected a tuple", function, counts.whole[0])
        rejected("offsets: got none", function, ())
    five = inverse_distance(5)
    rejected("weights: got 5, expected 6", symmetric_window, counts.whole, weights=five)
    rejected("window: got 0", inverse_distance, 0)


def test_counts_are_compared_by_identity(counted):
    _, counts = counted
    assert counts == counts
    assert counts != Counts(counts.words, counts.first, counts.second, counts.across)


@pytest.mark.skipif("JAXMETA_DATA" not in os.environ, reason="JAXMETA_DATA is not set")
def test_the_news_corpus():
    path = pathlib.Path(os.environ["JAXMETA_DATA"]) / "corpora" / "news.txt.gz"
    vocabulary = build_vocabulary(Corpus(path, lines_are_documents=True), size=1000)
    assert vocabulary.tokens == pytest.approx(6.4e6, rel=0.01)
    assert vocabulary.words[0] == "the"
