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
    Split,
    _pairs,
    build_vocabulary,
    contiguous_parts,
    count_windows,
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
PARTS = (1, 2, 4, 8)


def oracle(texts, words, window, unknown, boundaries, parts=1, label=lambda *_: 0):
    """Pairs by node, offset and words, from texts that are lists of lines that are lists of words.

    `label` gives the part of a position in a text with a given number.
    """
    pairs = collections.Counter()
    for number, lines in enumerate(texts):
        position, documents = 0, []
        for line in lines:
            document = []
            for word in line:
                if word in words or unknown == "keep":
                    document.append((word, label(number, position)))
                    position += 1
            documents.append(document)
        if not boundaries:
            documents = [[place for document in documents for place in document]]
        for document in documents:
            for i, (a, one) in enumerate(document):
                for j, (b, other) in enumerate(document):
                    if 1 <= j - i <= window and a in words and b in words:
                        pairs[smallest(one, other, parts), j - i, a, b] += 1
    return pairs


def smallest(one, other, parts):
    """The node of the smallest part with both: the corpus is 0, then come its halves, and so on."""
    while one != other:
        one, other, parts = one // 2, other // 2, parts // 2
    return parts - 1 + one


def as_pairs(counts):
    """The same from counts."""
    pairs = collections.Counter()
    for node, offsets in enumerate(counts.nodes):
        pairs |= {(node, *pair): n for pair, n in by_words(counts.words, offsets).items()}
    return pairs


def by_words(words, offsets):
    """Pairs by offset and words from counts by offset."""
    pairs = collections.Counter()
    for offset, x in enumerate(offsets, start=1):
        assert x.shape == (len(words),) * 2
        assert x.dtype == np.int64
        assert x.indices.dtype == np.int32
        assert x.has_canonical_format
        assert (x.data > 0).all()
        x = x.tocoo()
        for a, b, n in zip(*x.coords, x.data, strict=True):
            pairs[offset, words[a], words[b]] = int(n)
    return pairs


def equal(x, y):
    same = x.words == y.words and len(x.nodes) == len(y.nodes)
    return same and as_pairs(x) == as_pairs(y)


def same_offsets(x, y):
    return len(x) == len(y) and all((a != b).nnz == 0 for a, b in zip(x, y, strict=True))


def coins(seed, size, name, blocks=100):
    """Halves of a text by position, tossed one by one."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    tossed = [rng.random() < 0.5 for _ in range(blocks)]
    return lambda position: (position // size % 2) ^ tossed[position // (2 * size)]


def dealt(seed, size, parts, name, blocks=64):
    """Parts of a text by position: of each two blocks that a part got, its halves get one each."""
    held = [range(blocks)]
    while (level := len(held)) < parts:
        key = (level.bit_length() - 1,) if level > 1 else ()
        entropy = np.random.SeedSequence([seed, zlib.crc32(name.encode())], spawn_key=key)
        rng = np.random.default_rng(entropy)
        halves = [[] for _ in range(2 * level)]
        for pair in range(blocks // (2 * level)):
            for part, own in enumerate(held):
                coin = int(rng.random() < 0.5)
                halves[2 * part + coin].append(own[2 * pair])
                halves[2 * part + 1 - coin].append(own[2 * pair + 1])
        held = halves
    part_of = {block: part for part, own in enumerate(held) for block in own}
    return lambda position: part_of[position // size]


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
    split=st.none() | st.tuples(st.integers(0, 3), st.integers(1, 5), st.sampled_from(PARTS)),
    piece=st.integers(1, 12),
    chunk=st.integers(1, 12),
)
def test_counts_are_exact(texts, window, unknown, boundaries, split, piece, chunk):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        paths = write(folder, texts)
        patch.setattr(reading, "PIECE", piece)
        patch.setattr(_pairs, "CHUNK", chunk)
        blocks, parts, label = None, 1, lambda *_: 0
        if split is not None:
            seed, size, parts = split
            blocks = random_blocks(seed, size, parts)
            by_text = [dealt(seed, size, parts, path.name) for path in paths]
            label = lambda number, position: by_text[number](position)  # noqa: E731
        truth = lambda number: oracle(  # noqa: E731
            texts, KNOWN, window, unknown, boundaries, number,
            lambda text, position: label(text, position) * number // parts,
        )  # fmt: skip
        count = lambda: count_windows(  # noqa: E731
            Corpus(paths, lines_are_documents=boundaries),
            given_vocabulary(KNOWN),
            window=window,
            unknown=unknown,
            split=blocks,
        )
        if parts > 1 and not {1, 2} <= {node for node, *_ in truth(2)}:
            with pytest.raises(ValueError, match=r"split: got no pair of words in part\(2, [01]\)"):
                count()
            return
        counts = count()
        assert len(counts.nodes) == 2 * parts - 1
        assert as_pairs(counts) == truth(parts)
        for number in PARTS[: parts.bit_length()]:
            nodes = truth(number)
            for index in range(number):
                own = {key[1:]: n for key, n in nodes.items() if key[0] == number - 1 + index}
                if own or number == 1:
                    assert by_words(KNOWN, counts.part(number, index)) == own
                else:
                    with pytest.raises(ValueError, match=rf"no pair .* part\({number}, {index}\)"):
                        counts.part(number, index)


def test_pairs_across_many_chunks(file, rng, monkeypatch):
    # Sums of sums of sums: enough chunks for several levels, and not a power of two of them.
    monkeypatch.setattr(reading, "PIECE", 64)
    monkeypatch.setattr(_pairs, "CHUNK", 50)
    tokens = rng.choice(WORDS, 3000).tolist()
    path = file(" ".join(tokens))
    by_position = dealt(7, 10, 4, path.name, 304)
    expected = oracle([[tokens]], KNOWN, 3, "keep", False, 4, lambda _, i: by_position(i))
    counts = count_windows(
        Corpus(path), given_vocabulary(KNOWN), window=3, split=random_blocks(7, size=10, parts=4)
    )
    assert as_pairs(counts) == expected


@pytest.mark.parametrize(
    ("size", "parts", "large"),
    [(70_000, 1, True), (40_000, 2, True), (20_000, 8, True), (16_900, 8, False)],
)
def test_keys_of_large_vocabularies(file, rng, size, parts, large):
    assert ((2 * parts - 1) * size**2 >= 2**32) == large
    words = [f"w{i}" for i in range(size)]
    # The last words have the largest keys.
    tokens = [words[i] for i in rng.choice([0, 1, size - 2, size - 1], 200)]
    path = file(" ".join(tokens))
    by_position = dealt(0, 5, parts, path.name)
    expected = oracle([[tokens]], set(words), 2, "keep", False, parts, lambda _, i: by_position(i))
    counts = count_windows(
        Corpus(path),
        given_vocabulary(words),
        window=2,
        split=random_blocks(0, size=5, parts=parts) if parts > 1 else None,
    )
    assert as_pairs(counts) == expected


def test_files_add_up(tmp_path, rng):
    texts = [[rng.choice(WORDS, 60).tolist()] for _ in range(3)]
    paths = write(tmp_path, texts)
    count = lambda path: count_windows(  # noqa: E731
        Corpus(path), given_vocabulary(KNOWN), split=random_blocks(0, size=4, parts=4)
    )
    one, two, three = map(count, paths)
    assert equal(one + two + three, count(paths))


def test_parts_are_nested(file, rng):
    corpus = Corpus(file(" ".join(rng.choice(WORDS, 3000))))
    vocabulary = build_vocabulary(corpus)
    plain = count_windows(corpus, vocabulary)
    assert len(plain.nodes) == 1
    found = {
        parts: count_windows(corpus, vocabulary, split=random_blocks(0, size=7, parts=parts))
        for parts in PARTS
    }
    assert equal(found[1], plain)
    for parts, counts in found.items():
        assert same_offsets(counts.whole, plain.whole)
        for number in PARTS[1 : parts.bit_length()]:
            # Parts are the same however often they are split again.
            for index in range(number):
                same = counts.part(number, index), found[number].part(number, index)
                assert same_offsets(*same)
            # A part has two halves, and what crosses from one to the other.
            for index in range(number // 2):
                crossing = counts.nodes[number // 2 - 1 + index]
                halves = (counts.part(number, 2 * index + half) for half in range(2))
                added = [sum(x[1:], start=x[0]) for x in zip(crossing, *halves, strict=True)]
                assert any(x.nnz for x in crossing)
                assert same_offsets(counts.part(number // 2, index), added)


@pytest.mark.parametrize(
    ("split", "label"),
    [
        (contiguous_parts(11), lambda i: int(i >= 5)),
        (Split(2, lambda _: lambda i: i >= 5), lambda i: int(i >= 5)),
        (contiguous_parts(11, 4), lambda i: (i >= 2) + (i >= 5) + (i >= 8)),
        (Split(4, lambda _: lambda i: i % 4), lambda i: i % 4),
    ],
)
def test_any_split_will_do(file, split, label):
    tokens = list("abaababbbab")
    counts = count_windows(
        Corpus(file(" ".join(tokens))), given_vocabulary(["a", "b"]), split=split
    )
    expected = oracle([[tokens]], "ab", 5, "keep", False, split.parts, lambda _, i: label(i))
    assert as_pairs(counts) == expected


def test_files_of_one_name_start_anew(tmp_path, file):
    # Positions count from the start of each file, also when two have the same name.
    paths = [file("a b a b b a", "one/text"), file("b a a b a", "two/text")]
    texts = [[path.read_text().split()] for path in paths]
    by_position = coins(1, 2, "text")
    counts = count_windows(
        Corpus(tmp_path), given_vocabulary(["a", "b"]), split=random_blocks(1, size=2)
    )
    expected = oracle(texts, "ab", 5, "keep", False, 2, lambda _, i: by_position(i))
    assert as_pairs(counts) == expected


@hypothesis.given(
    seed=st.integers(0, 100),
    size=st.integers(1, 9),
    parts=st.sampled_from(PARTS),
    cuts=st.lists(st.integers(1, 199), max_size=5, unique=True),
)
def test_blocks_do_not_depend_on_how_they_are_asked_for(seed, size, parts, cuts):
    labels = random_blocks(seed, size, parts).labels_of("name")
    positions = np.arange(200)
    whole = labels(positions)
    cut = [labels(x) for x in np.split(positions, sorted(cuts))]
    np.testing.assert_array_equal(np.concatenate(cut), whole)
    by_position = dealt(seed, size, parts, "name", 200)
    np.testing.assert_array_equal(whole, [by_position(i) for i in positions])
    # Of whole groups of blocks all parts get as many.
    groups = 200 // (parts * size)
    counted = np.bincount(whole[: groups * parts * size], minlength=parts)
    np.testing.assert_array_equal(counted, [groups * size] * parts)
    if parts > 1:
        # Halves are those of two parts, whose coins are tossed one by one.
        by_position = coins(seed, size, "name")
        np.testing.assert_array_equal(whole // (parts // 2), [by_position(i) for i in positions])


@pytest.mark.parametrize("parts", [*PARTS, 16])
def test_contiguous_parts_are_of_equal_length(parts):
    for tokens in range(2, 50):
        positions = np.arange(tokens)
        labels = contiguous_parts(tokens, parts).labels_of("name")
        starts = [tokens * part // parts for part in range(1, parts)]
        expected = [sum(start <= i for start in starts) for i in positions]
        np.testing.assert_array_equal(labels(positions), expected)
        np.testing.assert_array_equal(labels(positions[tokens // 3 :]), expected[tokens // 3 :])


def test_blocks_differ_between_files_seeds_and_levels():
    positions = np.arange(100_000)
    labels = [random_blocks(s, parts=4).labels_of(x)(positions) for s in (0, 1) for x in ("x", "y")]
    bits = [bit for label in labels for bit in (label >> 1, label & 1)]
    for a, b in itertools.combinations(bits, 2):
        assert 0.2 < np.mean(a == b) < 0.8


@pytest.mark.parametrize("parts", [2, 8])
def test_memory_does_not_grow_with_the_text(file, rng, monkeypatch, parts):
    monkeypatch.setattr(reading, "PIECE", 1 << 12)
    monkeypatch.setattr(_pairs, "CHUNK", 1 << 10)
    words = [f"word{i}" for i in range(20)]
    split = random_blocks(0, size=100, parts=parts)

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
    split = random_blocks(0, size=10, parts=4)
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
    for kept in (Counts(counts.words, (counts.whole,)), counts):
        save_counts(path, kept)
        assert equal(load_counts(path), kept)
    assert [file.name for file in path.parent.iterdir()] == ["counts.npz"]


def test_what_is_no_counts_is_not_loaded(tmp_path, file, counted):
    _, counts = counted
    path = tmp_path / "counts.npz"
    save_counts(path, counts)
    content = path.read_bytes()
    np.savez(tmp_path / "foreign.npz", x=np.arange(3))
    np.savez(tmp_path / "words.npz", words=np.arange(3))
    words = np.frombuffer(b'["a"]', np.uint8)
    np.savez(tmp_path / "halves.npz", words=words, first_1_data=np.ones(1))  # as it once was
    np.save(tmp_path / "array.npy", np.arange(3))
    names = [file(content[:length], f"cut{length}.npz") for length in (0, 100, len(content) - 100)]
    names += [tmp_path / name for name in ("foreign.npz", "words.npz", "halves.npz", "array.npy")]
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
    half = r"split: got no pair of words in part\(2, [01]\)"
    rejected(half, count_windows, corpus, vocabulary, split=random_blocks(0))
    rejected(
        "tokens: got 3, .* has more", count_windows, corpus, vocabulary, split=contiguous_parts(3)
    )
    for labels in (lambda i: i + 1, lambda i: i - 1, lambda i: i / 4, lambda i: i[1:], lambda _: 0):
        split = Split(4, lambda _, labels=labels: labels)
        wrong = "split: got .* expected 0 to 3 for each of .* positions"
        rejected(wrong, count_windows, corpus, vocabulary, split=split)
    rejected("size: got 0", random_blocks, 0, size=0)
    rejected("seed: got -1", random_blocks, -1)
    rejected("tokens: got 1", contiguous_parts, 1)
    for parts, expected in ((0, "at least 1"), (3, "a power of two; parts are halves")):
        for make in (random_blocks, contiguous_parts):
            rejected(f"parts: got {parts}, expected {expected}", make, 9, parts=parts)
    labels_of = contiguous_parts(9).labels_of
    labels_of("a.txt")(np.arange(9))
    labels_of("a.txt")  # as in a second pass
    rejected("split: got a.txt and b.txt, expected a corpus of one file", labels_of, "b.txt")


def test_parts_that_are_not_there(rejected, counted):
    _, counts = counted
    rejected("number: got 8, expected 1 to 4; the split has 4", counts.part, 8, 0)
    rejected("number: got 0, expected 1 to 4", counts.part, 0, 0)
    rejected("number: got 3, expected a power of two", counts.part, 3, 0)
    rejected("index: got 2, expected 0 to 1", counts.part, 2, 2)
    rejected("index: got -1, expected 0 to 1", counts.part, 2, -1)


def test_counts_that_do_not_add_up(rejected, file):
    corpus = Corpus(file("a b b a"))
    counts = count_windows(corpus, given_vocabulary(["a", "b"]))
    other = count_windows(corpus, given_vocabulary(["b", "a"]))
    narrow = count_windows(corpus, given_vocabulary(["a", "b"]), window=2)
    rejected("expected the same words in the same order", lambda: counts + other)
    rejected("got windows 5 and 2, expected the same", lambda: counts + narrow)
    halves = count_windows(corpus, given_vocabulary(["a", "b"]), split=contiguous_parts(4))
    rejected("got numbers of nodes 1 and 3, expected the same", lambda: counts + halves)
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
    assert counts != Counts(counts.words, counts.nodes)
