"""Merging files: the same as by arrays, and nothing left behind when it fails."""

import os
import tempfile
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from vector_files import rejected

from jaxmeta import Vectors, align, concatenate, merge_files, read_vectors, write_vectors
from jaxmeta.files import DuplicateWords, _blocks, load_plan, merge
from jaxmeta.methods import meta_embedding
from jaxmeta.plans import PLANS, Plan, Settings
from jaxmeta.weightings import WEIGHTINGS

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
@pytest.mark.one_leg
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


@pytest.mark.one_leg
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


@pytest.mark.one_leg
def test_progress(paths):
    seen = []
    merge_files(paths, paths[0].with_name("out.npy"), progress=lambda *now: seen.append(now))
    assert seen == [("read", 0.0), ("read", 0.5), ("read", 1.0), ("vectors", 0.0), ("vectors", 1.0)]


def big(tmp_path, rng, suffix=".npy", **settings):
    """Two files of 2,000 words and 200 columns."""
    words = [f"w{i}" for i in range(2_000)]
    paths = [tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"]
    for path in paths:
        write_vectors(path, (words, rng.normal(size=(2_000, 200)).astype(np.float32)), **settings)
        rng.shuffle(words)
    return paths


@pytest.mark.one_leg
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".bin", ".bin.gz"])
@pytest.mark.parametrize("method", ["UW", "UW-unit"])
def test_memory_is_that_of_blocks_and_words(tmp_path, rng, monkeypatch, method, suffix):
    monkeypatch.setattr(_blocks, "BLOCK", 1 << 14)
    monkeypatch.setattr(merge, "BLOCK", 1 << 16)
    paths = big(tmp_path, rng, suffix)
    merge_files(paths, tmp_path / "out.npy", method=method)  # what is imported and compiled
    tracemalloc.start()
    try:
        merge_files(paths, tmp_path / "out.npy", method=method)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    blocks, words, sources = 4 * (1 << 16), 2 * 2_000 * 200, 2 * 2_000 * 200 * 4
    assert peak < blocks + words < sources / 3


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
@pytest.mark.one_leg
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
@pytest.mark.one_leg
def test_bad_files_leave_nothing_behind(paths, text, message):
    wrong = paths[1].with_suffix(".txt")
    wrong.write_bytes(text)
    before = {path: path.read_bytes() for path in wrong.parent.iterdir()}
    with pytest.raises(ValueError, match=message) as raised:
        merge_files([paths[0], wrong], wrong.with_name("out.npy"))
    assert "; " in str(raised.value)  # what to do
    assert {path: path.read_bytes() for path in wrong.parent.iterdir()} == before


# Widths, and words in an order of its own: no two of three sources have the same ones.
LINEAR = [
    name for name in PLANS if name not in WEIGHTINGS or WEIGHTINGS[name].needs in ("", "sigma")
]
WIDTHS, SIGMAS = (4, 3, 4), (0.3, 0.2, 0.1)
SUFFIXES = (".txt", ".npy", ".safetensors", ".bin", ".npz", ".vec.gz")


def sources_of(rng, n=40, dtype=np.float32):
    words = [f"w{i}" for i in range(n + 10)]
    found = []
    for k in WIDTHS:
        own = rng.permutation(words)[:n]
        scale = 1 + np.arange(k)
        found.append(Vectors(tuple(own), (rng.normal(size=(n, k)) * scale + 0.5).astype(dtype)))
    return found


def written(folder, sources, suffixes=(".npy", ".txt", ".npz")):
    paths = [
        folder / f"{j}{suffix}" for j, suffix in zip(range(len(sources)), suffixes, strict=True)
    ]
    for path, source in zip(paths, sources, strict=True):
        write_vectors(path, source)
    return paths


def agree(found, expected, terms=2_000):
    """Equal but for rounding, and the signs of directions."""
    eps = np.finfo(found.dtype).eps
    found, expected = found.astype(np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    scale = np.linalg.norm(expected, axis=1)
    error = np.abs(found @ found.T - expected @ expected.T) / np.maximum(np.outer(scale, scale), 1)
    assert error.max() < terms * eps


def settings_of(name, k=None):
    needs = "sigmas" if PLANS[name].needs else ""
    return Settings(sigmas=SIGMAS if needs else None, k=k)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "vocabulary"),
    [
        ("default", "union"),
        *(
            pytest.param(*case, marks=pytest.mark.one_leg)
            for case in (
                *((name, "union") for name in LINEAR if name != "default"),
                ("default", "intersection"),
                ("PCA", "intersection"),
            )
        ),
    ],
)
def test_every_linear_method_is_as_in_memory(tmp_path, rng, monkeypatch, name, vocabulary):
    monkeypatch.setattr(merge, "BLOCK", 11 * 8 * 7)  # a few rows at a time
    dtype = jnp.zeros(()).dtype
    sources = sources_of(rng, dtype=dtype)
    paths = written(tmp_path, sources, (".npy", ".safetensors", ".npz"))
    missing = "mean" if name == "1TON" else "zero"
    settings = settings_of(name)
    merge_files(
        paths, tmp_path / "out.npy", method=name, settings=settings,
        vocabulary=vocabulary, missing=missing,
    )  # fmt: skip
    whole = align(sources, vocabulary=vocabulary, missing=missing)
    expected = meta_embedding(name, whole, settings)
    found = read_vectors(tmp_path / "out.npy")
    assert found.words == expected.words
    assert found.matrix.dtype == dtype
    agree(found.matrix, expected.matrix)


@pytest.mark.slow
@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("method", "suffixes", "missing"),
    [
        ("default", SUFFIXES[:3], "zero"),
        ("default", SUFFIXES[3:], "mean"),
        ("PCA", SUFFIXES[:3], "mean"),
        ("PCA", SUFFIXES[3:], "zero"),
    ],
)
def test_every_format_and_a_plan_for_later(tmp_path, rng, monkeypatch, method, suffixes, missing):
    monkeypatch.setattr(merge, "BLOCK", 11 * 4 * 7)
    monkeypatch.setattr(_blocks, "BLOCK", 64)
    sources = sources_of(rng)
    paths = written(tmp_path, sources, suffixes)
    out, plan = tmp_path / "out.npy", tmp_path / "plan.safetensors"
    k = 3 if method == "PCA" else None
    given = {"vocabulary": "union", "missing": missing}
    merge_files(paths, out, method=method, k=k, plan_to=plan, **given)
    whole = align(sources, **given)
    expected = meta_embedding(method, whole, Settings(k=k))
    agree(read_vectors(out).matrix, expected.matrix, terms=20_000)
    # The plan, applied to the same files, gives the same rows.
    loaded = load_plan(plan, names=("0", "1", "2"))
    assert int(loaded.rows) == len(whole.words)
    coverage = merge_files(paths, tmp_path / "again.npy", method=loaded, **given)
    assert coverage == align(sources, names=list(map(str, paths)), **given).coverage
    assert (tmp_path / "again.npy").read_bytes() == out.read_bytes()


@pytest.mark.one_leg
def test_given_words(tmp_path, rng):
    sources = sources_of(rng)
    paths = written(tmp_path, sources)
    wanted = ["w7", "nothing", "w3", "w7", *[f"w{i}" for i in range(20, 30)]]
    out = tmp_path / "out.npy"
    coverage = merge_files(paths, out, method="UW-unit", vocabulary=wanted)
    whole = align(sources, vocabulary=wanted, names=list(map(str, paths)))
    assert whole.words == ("w7", "w3", *wanted[4:])
    assert coverage == whole.coverage
    found = read_vectors(out)
    assert found.words == whole.words
    agree(found.matrix, meta_embedding("UW-unit", whole).matrix)
    message = "vocabulary: got 2 words of which no source has any, expected at least one"
    rejected(message, merge_files, paths, out, vocabulary=["x", "y"])
    assert read_vectors(out).words == found.words


@pytest.mark.one_leg
def test_names(tmp_path, rng):
    paths = written(tmp_path, sources_of(rng))
    out, plan = tmp_path / "out.npy", tmp_path / "plan.safetensors"
    coverage = merge_files(paths, out, names=("a", "b", "c"), plan_to=plan)
    assert [each.name for each in coverage] == ["a", "b", "c"]
    assert load_plan(plan, names=("a", "b", "c")).widths == WIDTHS
    rejected("names: got b, a, c, expected a, b, c", load_plan, plan, names=("b", "a", "c"))
    rejected("names: got 1 entries, expected 3", merge_files, paths, out, names=("a",))


@pytest.mark.one_leg
def test_weights_in_fewer_dimensions(tmp_path, rng):
    sources = sources_of(rng, dtype=jnp.zeros(()).dtype)
    paths = written(tmp_path, sources, (".npy", ".npy", ".npz"))
    weights = (0.5, 2.0, np.array([1.0, 3.0, 2.0, 0.5]))
    out = tmp_path / "out.npy"
    merge_files(paths, out, weights=weights, k=4)
    whole = align(sources)
    scaled = [jnp.asarray(np.asarray(x) * w) for x, w in zip(whole.sources, weights, strict=True)]
    scaled = tuple(x.astype(whole.sources[0].dtype) for x in scaled)
    agree(read_vectors(out).matrix, meta_embedding("UW", scaled, Settings(k=4)))


@pytest.mark.one_leg
@pytest.mark.filterwarnings("ignore:default. source 0 has [13] rows for 4 dim:UserWarning")
@pytest.mark.parametrize("name", ["default", "AVG-rotated", "PCA"])
@pytest.mark.parametrize(
    "kind", ["fewer words than columns", "one shared word", "zeros", "a row of zeros", "twice"]
)
def test_poor_sources(tmp_path, rng, name, kind):
    dtype = jnp.zeros(()).dtype
    n = {"fewer words than columns": 3, "one shared word": 1}.get(kind, 12)
    words = tuple(f"w{i}" for i in range(n))
    first, second = (rng.normal(size=(n, 4)).astype(dtype) for _ in range(2))
    if kind == "zeros":
        second[:] = 0
    elif kind == "a row of zeros":
        first[3] = second[3] = 0
    elif kind == "twice":
        second[:, 1] = second[:, 0]
    sources = [Vectors((*words, "more"), np.vstack([first, np.ones((1, 4), dtype)]))]
    sources.append(Vectors(words[::-1], second[::-1]))
    paths = written(tmp_path, sources, (".npy", ".npz"))
    merge_files(paths, tmp_path / "out.npy", method=name)
    found = read_vectors(tmp_path / "out.npy").matrix
    assert np.isfinite(found).all()
    if (name, kind) != ("default", "one shared word"):  # a row less itself: rounding
        agree(found, meta_embedding(name, align(sources)).matrix, terms=20_000)


@pytest.mark.one_leg
def test_words_that_come_again(tmp_path, file):
    paths = [file("a 1\nb 2\na 3\n", "first.txt"), file("b 4\na 5\n", "second.txt")]
    with pytest.warns(DuplicateWords, match=r"first\.txt: 1 rows repeat a word") as warned:
        merge_files(paths, tmp_path / "out.npy")
    assert warned[0].filename == __file__
    assert np.load(tmp_path / "out.npy").tolist() == [[1, 5], [2, 4]]


@pytest.mark.one_leg
def test_words_that_the_result_cannot_hold_are_seen_early(tmp_path, file):
    path, seen = file("new york 1 2\nb 3 4\n"), []
    message = r"words\[0\]: got 'new york', .*without spaces"
    settings = {"method": "default", "progress": lambda *now: seen.append(now[0])}
    rejected(message, merge_files, [path], tmp_path / "out.bin", **settings)
    assert set(seen) == {"read"}


@pytest.mark.one_leg
def test_the_result_may_replace_a_source(paths):
    merge_files(paths, paths[1], weights=BY_SOURCE)
    whole = align((FIRST, SECOND))
    np.testing.assert_array_equal(
        read_vectors(paths[1]).matrix, concatenate(whole.sources, BY_SOURCE)
    )


@pytest.mark.one_leg
@pytest.mark.parametrize("stage", ["read", "fit", "vectors"])
@pytest.mark.parametrize("suffix", [".txt", ".npy", ".npz"])
def test_an_interruption_leaves_what_was_there(tmp_path, rng, monkeypatch, suffix, stage):
    monkeypatch.setattr(merge, "BLOCK", 400)
    monkeypatch.setattr(_blocks, "BLOCK", 64)
    paths = written(tmp_path, sources_of(rng))
    out, plan = tmp_path / f"out{suffix}", tmp_path / "plan.safetensors"
    merge_files(paths, out, plan_to=plan)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def interrupt(now, done):
        if now == stage and done > 0.5:
            assert stage != "vectors" or len(list(tmp_path.iterdir())) > len(before)
            raise KeyboardInterrupt("now")

    settings = {"method": "default", "plan_to": plan, "progress": interrupt}
    rejected("now", merge_files, paths, out, error=KeyboardInterrupt, **settings)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.one_leg
def test_a_full_disk_is_named(tmp_path, rng, monkeypatch):
    paths = written(tmp_path, sources_of(rng))

    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write(self, _):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    message = r"numbers of .*1\.txt could not be kept there .*No space left.*; free some space"
    rejected(message, merge_files, paths, tmp_path / "out.npy", error=OSError)


@pytest.mark.one_leg
@pytest.mark.skipif(os.name == "nt", reason="open files have names there")
def test_what_is_unpacked_has_no_name(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK", 64)
    paths = written(tmp_path, sources_of(rng))
    before, seen = sorted(tmp_path.iterdir()), []

    def look(stage, done):
        if stage == "read":
            seen.append((done, sorted(tmp_path.iterdir())))

    merge_files(paths, tmp_path / "out.npy", progress=look)
    assert all(names == before for _, names in seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == 1.0


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "LLE"}, "^method: got 'LLE', expected one of 'default', 'UW'"),
        ({"method": "DW"}, "^settings.sigmas: got None, expected it for DW; estimate the noise"),
        (
            {"method": "DW", "settings": Settings(sigmas=(1.0,))},
            "sigmas: got 1 entries, expected",
        ),
        (
            {"method": "default", "weights": (1.0, 2.0)},
            "^weights: got some for 'default'",
        ),
        ({"weights": (1.0, 2.0), "settings": Settings(shrink=True)}, "^settings.shrink: got True"),
        ({"method": "SVD", "k": 6}, "^k: got 6, expected 1 to 5; the concatenation has 5"),
        ({"method": "SVD", "k": 0}, "^k: got 0, expected 1 to 5"),
        ({"method": "SVD", "k": 1.5}, "^k: got 1.5, expected a fraction"),
        ({"missing": "predict"}, "^missing: got 'predict', expected 'zero' or 'mean'; .*align"),
        ({"method": "1TON", "vocabulary": "union"}, "^missing: got 'zero' for words .*all .*1TON"),
        ({"settings": Settings(present=jnp.ones((3, 2), bool))}, "^settings.present: got an array"),
        (
            {"method": Plan(None, (jnp.ones(3), jnp.ones(2)))},
            r"^paths: got widths \(2, 3\)",
        ),
        ({"method": Plan(None, (jnp.ones(2),))}, r"^paths: got widths \(2, 3\), expected \(2,\)"),
        ({"method": Plan(None, (jnp.ones(2), jnp.ones(3))), "k": 2}, "^method: got a plan, and k"),
    ],
)
def test_methods_that_cannot_be(paths, hooked, settings, message):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
    before = {path: path.read_bytes() for path in paths[0].parent.iterdir()}
    rejected(message, merge_files, paths, paths[0].with_name("out.npy"), **settings)
    assert {path: path.read_bytes() for path in paths[0].parent.iterdir()} == before
