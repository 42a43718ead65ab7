"""Counts are exact to the last integer, however text comes and however it is cut up."""

import collections
import itertools
import pathlib
import tempfile
import tracemalloc
import zlib

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from scipy.sparse import csr_array

from jaxmeta.released import released_window
from jaxmeta.text import (
    Corpus,
    Counts,
    build_vocabulary,
    contiguous_halves,
    count_windows,
    counting,
    given_vocabulary,
    inverse_distance,
    load_counts,
    random_blocks,
    save_counts,
    symmetric_window,
)
from jaxmeta.text import (
    corpus as reading,
)

pytestmark = pytest.mark.one_leg

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


lines_of_words = st.lists(st.lists(st.sampled_from(WORDS), max_size=8), min_size=1, max_size=6)
some_texts = st.lists(
    lines_of_words.filter(lambda lines: set(itertools.chain(*lines)) & set(KNOWN)),
    min_size=1,
    max_size=3,
)


@hypothesis.settings(max_examples=200)
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
        patch.setattr(reading, "PIECE", piece)
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
    monkeypatch.setattr(reading, "PIECE", 64)
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


def test_memory_does_not_grow_with_the_text(file, rng, monkeypatch):
    monkeypatch.setattr(reading, "PIECE", 1 << 12)
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

    few = peak(20_000), peak(20_000)  # the first time more is made that stays
    assert peak(80_000) < 1.3 * min(few)


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


@pytest.mark.parametrize(
    ("end", "value"),
    [
        ("_indices", np.array([10**6], np.int32)),
        ("_indices", np.array([-5], np.int32)),
        ("_indptr", np.array([2**30], np.int32)),
        ("_indptr", np.array([-1], np.int32)),
        ("_data", np.array([-1])),
        ("_data", np.array([0.5])),
        ("_data", np.array([[1]])),
        ("_indptr", None),
        ("words", np.frombuffer(b'"abcdef"', np.uint8)),
        ("words", np.frombuffer(b"[1, 2]", np.uint8)),
        ("words", np.frombuffer(b"[" * 100_000, np.uint8)),
        ("words", None),
    ],
)
def test_crafted_counts_are_refused(tmp_path, counted, end, value):
    """SciPy would read and write wherever indices say."""
    _, counts = counted
    path = tmp_path / "counts.npz"
    save_counts(path, counts)
    with np.load(path) as stored:
        arrays = dict(stored)
    name = next(name for name in arrays if name.endswith(end))
    if value is None:
        del arrays[name]
    elif value.dtype == np.uint8 or value.ndim > 1 or value.dtype.kind == "f":
        arrays[name] = value
    else:
        arrays[name][len(arrays[name]) // 2] = value[0]
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=r"counts\.npz: got .*save_counts wrote; count again"):
        load_counts(path)


def test_wrong_settings_of_counts(rejected, file):
    corpus, vocabulary = Corpus(file("a b b a")), given_vocabulary(["a", "b"])
    rejected("window: got 0, expected at least 1", count_windows, corpus, vocabulary, window=0)
    rejected("expected one of 'keep', 'skip'", count_windows, corpus, vocabulary, unknown="drop")
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


def test_counts_that_do_not_add_up(rejected, file):
    corpus = Corpus(file("a b b a"))
    counts = count_windows(corpus, given_vocabulary(["a", "b"]))
    other = count_windows(corpus, given_vocabulary(["b", "a"]))
    narrow = count_windows(corpus, given_vocabulary(["a", "b"]), window=2)
    rejected("expected the same words in the same order", lambda: counts + other)
    rejected("got windows 5 and 2, expected the same", lambda: counts + narrow)
    with pytest.raises(TypeError):
        counts + 1


def test_wrong_offsets(rejected, counted):
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
