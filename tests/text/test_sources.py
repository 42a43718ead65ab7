"""From corpora to sources: against the same steps written out, and what the cache keeps."""

import errno
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import assert_close

import jaxmeta
from jaxmeta import Corpus, Recipe, log_count, ppmi, shifted_pmi
from jaxmeta.dimension import RULES
from jaxmeta.eigen import leading_eigenpairs, multiply_by
from jaxmeta.equalise import equalise, estimate_ideal
from jaxmeta.nested import nested_noise
from jaxmeta.progress import silent
from jaxmeta.text import _steps
from jaxmeta.weightings import weigh

pytestmark = [pytest.mark.one_leg, pytest.mark.slow]  # made of functions that both legs test

# The rule of the paper decomposes half as much; the default has tests of its own.
build_sources = functools.partial(jaxmeta.build_sources, rule="paper")
SHIFTED = functools.partial(shifted_pmi, shift=2.0)
SIZE = 40


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    """Two texts of one model."""
    folder = tmp_path_factory.mktemp("corpora")
    model = jaxmeta.text.latent_model(SIZE, rank=3, strength=0.5, seed=0)
    for name, seed in (("a", 1), ("b", 2)):
        text = jaxmeta.text.sample_tokens(model, tokens=60_000, documents=200, seed=seed)
        jaxmeta.text.write_corpus(folder / f"{name}.txt", model, text)
    return tuple(Corpus(folder / f"{name}.txt", lines_are_documents=True) for name in "ab")


def recipes(corpora):
    a, b = corpora
    return [Recipe("GloVe", a, log_count), Recipe("SGNS", b, SHIFTED), Recipe("LSA", a, ppmi)]


@pytest.fixture(scope="module")
def built(corpora):
    return build_sources(recipes(corpora), size=SIZE - 5, window=3)


def test_sources_are_the_steps_written_out(corpora, built):
    own = [jaxmeta.text.build_vocabulary(corpus) for corpus in corpora]
    words = jaxmeta.text.intersection_vocabulary(own, size=SIZE - 5)
    for recipe, source in zip(recipes(corpora), built, strict=True):
        split = jaxmeta.text.random_blocks(0)
        counts = jaxmeta.text.count_windows(recipe.corpus, words, window=3, split=split)
        parts = [
            recipe.signal(jaxmeta.text.symmetric_window(part)).toarray().astype(np.float64)
            for part in (counts.whole, counts.part(2, 0), counts.part(2, 1))
        ]
        whole, first, second = parts
        n = len(whole)
        eigenvalues, vectors = np.linalg.eigh(whole)
        order = np.argsort(-np.abs(eigenvalues))
        sigma = np.linalg.norm(first - second) / (2 * n)
        scale = np.abs(eigenvalues).max()
        assert source.name == recipe.name
        assert source.words == words.words
        assert_close(source.sigma, sigma, scale=sigma)
        assert_close(source.eigenvalues, eigenvalues[order], scale=scale, terms=64)
        assert source.rank == np.sum(np.abs(eigenvalues) > 2 * sigma * n**0.5)
        expected = jaxmeta.paper_dimension(
            jnp.asarray(np.abs(eigenvalues[order])), sigma=sigma, n=n, alpha=0.5
        )
        assert source.k == int(expected)
        assert source.residual < 1e-3
        assert source.embedding.dtype == np.float32
        top = vectors[:, order[: source.k]] * np.abs(eigenvalues[order[: source.k]]) ** 0.5
        inner = np.asarray(source.embedding) @ np.asarray(source.embedding).T
        assert_close(inner, top @ top.T, scale=scale, terms=256)
        assert source.values.shape == (source.k,)


@pytest.mark.parametrize("iterative", [False, True])
def test_a_window_that_is_not_symmetric(corpora, monkeypatch, iterative):
    """Against a dense SVD: values, left directions, noise and k, of the released window."""
    if iterative:
        monkeypatch.setattr(jaxmeta.eigen, "iterates", lambda n, rank, _: rank < n)
        monkeypatch.setattr(jaxmeta.eigen, "DENSE", 4)
        monkeypatch.setattr(jaxmeta.eigen, "BLOCK", 2)
    window, corpus = jaxmeta.released.released_window, corpora[0]
    recipe = Recipe("GloVe", corpus, log_count, window)
    (source,) = build_sources([recipe], size=SIZE - 5, window=4, contiguous=True)
    words = jaxmeta.text.build_vocabulary(corpus)
    words = jaxmeta.text.intersection_vocabulary([words], size=SIZE - 5)
    split = jaxmeta.text.contiguous_parts(jaxmeta.text.build_vocabulary(corpus).tokens, 8)
    counts = jaxmeta.text.count_windows(corpus, words, window=4, split=split)
    parts = counts.part(1, 0), counts.part(2, 0), counts.part(2, 1)
    whole, first, second = (log_count(window(x)).toarray().astype(np.float64) for x in parts)
    n, sigma = len(whole), np.linalg.norm(first - second) / (2 * len(whole))
    u, values, _ = np.linalg.svd(whole)
    assert np.abs(whole - whole.T).max() > 0.1
    assert_close(source.sigma, sigma, scale=sigma)
    expected = jaxmeta.paper_dimension(jnp.asarray(values), sigma=sigma, n=n, alpha=0.5)
    assert source.k == int(expected)
    assert_close(source.values, values[: source.k], scale=values[0], terms=64)
    assert source.rank == np.sum(np.asarray(source.eigenvalues) > 2 * sigma * n**0.5)
    top = u[:, : source.k] * values[: source.k] ** 0.5
    inner = np.asarray(source.embedding) @ np.asarray(source.embedding).T
    assert_close(inner, top @ top.T, scale=values[0], terms=1024)


def test_windows_that_are_not_symmetric_have_no_eigenvalues(corpora):
    recipe = Recipe("GloVe", corpora[0], log_count, jaxmeta.released.released_window)
    for settings, named in (({"rule": "rie"}, 'rule="rie"'), ({"weights": [1, 1]}, "weights")):
        with pytest.raises(ValueError, match=rf"recipes\[0\]\.window: got a window and {named}"):
            build_sources([recipe], size=SIZE, window=2, **settings)


def test_large_signals_take_the_iterative_way(corpora, built, monkeypatch):
    """Where only some eigenpairs are computed the sources are the same, to the tolerance."""
    monkeypatch.setattr(jaxmeta.eigen, "iterates", lambda n, rank, _: rank < n)
    monkeypatch.setattr(jaxmeta.eigen, "DENSE", 4)
    monkeypatch.setattr(jaxmeta.eigen, "BLOCK", 2)
    monkeypatch.setattr(jaxmeta.eigen, "SURVEY", 4)
    again = build_sources(recipes(corpora), size=SIZE - 5, window=3)
    for source, expected in zip(again, built, strict=True):
        assert source.k == expected.k
        assert source.residual <= 1e-3
        np.testing.assert_allclose(source.values, expected.values, rtol=1e-5)
        assert len(source.eigenvalues) == SIZE - 5
        assert abs(source.rank - expected.rank) <= 3


def test_every_rule(corpora, tmp_path):
    """The released one is one less than the paper's."""
    found = {}
    for rule in RULES:
        settings = {"size": SIZE - 5, "rule": rule, "cache": tmp_path}
        (source,) = build_sources(recipes(corpora)[:1], **settings)
        assert 1 <= source.k <= SIZE - 5
        assert source.embedding.shape == (SIZE - 5, source.k)
        found[rule] = source.k
    assert found["released"] == max(1, found["paper"] - 1)


def test_equalised_is_the_steps_written_out(corpora, tmp_path):
    """The noise of nested parts, the ideal from equalised noise, and k against that."""
    for recipe in recipes(corpora):
        settings = {"size": SIZE - 5, "window": 3, "cache": tmp_path}
        (source,) = jaxmeta.build_sources([recipe], **settings)
        (again,) = jaxmeta.build_sources([recipe], rule="equalised", **settings)
        split = jaxmeta.text.random_blocks(0, parts=8)
        vocabulary = jaxmeta.text.given_vocabulary(source.words)
        counts = jaxmeta.text.count_windows(recipe.corpus, vocabulary, window=3, split=split)
        near = lambda *part: jaxmeta.text.symmetric_window(counts.part(*part))  # noqa: B023, E731
        total = near(1, 0).sum()
        levels = [
            [
                recipe.signal(near(number, i) * (total / near(number, i).sum()))
                for i in range(number)
            ]
            for number in (2, 4, 8)
        ]
        noise = nested_noise([[x.astype(np.float32) for x in level] for level in levels])
        for found, expected in zip(source.noise, noise, strict=True):
            assert_close(found, expected, scale=np.max(np.abs(expected)), terms=1024)
        assert source.sigma == float(source.noise.sigma)
        signal = jnp.asarray(recipe.signal(near(1, 0)).toarray(), jnp.float32)
        estimate = estimate_ideal(
            leading_eigenpairs(
                multiply_by(equalise(signal, noise.scales)),
                n=SIZE - 5,
                rank=SIZE - 5,
                key=jax.random.key(0),
            ),
            sigma=noise.sigma,
            scales=noise.scales,
        )
        scale = float(estimate.spectrum.values[0])
        assert_close(source.ideal.values, estimate.spectrum.values, scale=scale, terms=4096)
        curve = jaxmeta.pip_curve(source.ideal, jaxmeta.decompose(signal), alpha=0.5)
        assert abs(source.k - 1 - int(np.argmin(curve))) <= 1
        assert source.denoised.shape == (SIZE - 5, len(source.ideal.values))
        (weights,) = weigh("estimated-ideal", [source.observed])
        assert weights.shape == (source.k,)
        assert again.k == source.k
        np.testing.assert_array_equal(again.ideal.values, source.ideal.values)


def test_denoised_needs_an_ideal(built):
    with pytest.raises(ValueError, match="ideal: got None, expected an estimate"):
        _ = built[0].denoised


def test_contiguous_parts(corpora):
    for unknown in ("keep", "skip"):
        settings = {"size": SIZE - 5, "unknown": unknown, "contiguous": True}
        (source,) = build_sources(recipes(corpora)[:1], **settings)
        counted = jaxmeta.text.count_windows(
            corpora[0],
            jaxmeta.text.given_vocabulary(source.words),
            unknown=unknown,
            split=jaxmeta.text.contiguous_parts(places(corpora[0], source.words, unknown)),
        )
        halves = [
            log_count(jaxmeta.text.symmetric_window(counted.part(2, half))) for half in range(2)
        ]
        assert source.sigma == float(jaxmeta.noise_std(*halves))


def places(corpus, words, unknown):
    tokens = corpus.path.read_text().split()
    return len(tokens) if unknown == "keep" else sum(token in words for token in tokens)


def steps_of(corpus, signal, split, *, weights=None, cache=None):
    """Steps over the words of the corpus, with a window of 3."""
    vocabulary = jaxmeta.text.build_vocabulary(corpus)
    options = {"window": 3, "split": split}
    counting = _steps.Counting(jaxmeta.files.Cache(cache), {}, {}, corpus, vocabulary, options)
    return _steps.Steps(counting, "x", signal, weights, 1e-3, silent)


@pytest.mark.parametrize("weights", [None, (1.0, 0.5, 0.25)])
def test_signals_of_parts_have_the_total_of_the_whole(corpora, weights):
    split = jaxmeta.text.random_blocks(0, parts=8)
    steps = steps_of(corpora[0], log_count, split, weights=weights)
    near = functools.partial(jaxmeta.text.symmetric_window, weights=weights)
    counts = jaxmeta.text.count_windows(
        corpora[0], steps.counting.vocabulary, window=3, split=split
    )
    whole = near(counts.whole)
    plain = lambda counts: log_count(counts).astype(jnp.result_type(float))  # noqa: E731
    assert (steps.signal() != plain(whole)).nnz == 0
    for number in (2, 4, 8):
        parts = [near(counts.part(number, index)).toarray() for index in range(number)]
        signals = list(steps.part_signals(number))
        assert len(signals) == number
        for part, signal in zip(parts, signals, strict=True):
            expected = np.log1p(part * (whole.sum() / part.sum()))
            assert_close(signal.toarray(), expected, scale=expected.max())
    # The noise is that of halves as they are, as in the paper.
    halves = (plain(near(counts.part(2, half))) for half in range(2))
    assert steps.sigma == float(jaxmeta.noise_std(*halves))


def test_pmi_of_parts_does_not_depend_on_their_totals(corpora):
    steps = steps_of(corpora[0], SHIFTED, jaxmeta.text.random_blocks(0, parts=4))
    for index, signal in enumerate(steps.part_signals(4)):
        expected = SHIFTED(steps.near(4, index)).toarray()
        assert_close(signal.toarray(), expected, scale=np.abs(expected).max())


def test_more_parts_are_counted_anew(corpora, tmp_path):
    for parts in (2, 4):
        split = jaxmeta.text.random_blocks(0, parts=parts)
        steps = steps_of(corpora[0], log_count, split, cache=tmp_path)
        assert len(list(steps.part_signals(parts))) == parts


@pytest.mark.parametrize("contiguous", [False, True])
def test_only_halves_need_pairs(tmp_path, contiguous):
    """A text that is too short for eighths has the noise of its halves."""
    path, repeats = tmp_path / "short.txt", 1 if contiguous else 200  # blocks are of 1,000
    path.write_text("a b a c b a c " * repeats)
    recipe, texts = Recipe("x", Corpus(path), log_count), jaxmeta.text
    (source,) = build_sources([recipe], size=None, window=3, contiguous=contiguous)
    halves = texts.contiguous_parts(7) if contiguous else texts.random_blocks(0)
    assert source.sigma == steps_of(recipe.corpus, log_count, halves).sigma
    eighths = texts.contiguous_parts(7, 8) if contiguous else texts.random_blocks(0, parts=8)
    steps = steps_of(recipe.corpus, log_count, eighths)
    with pytest.raises(ValueError, match=r"split: got no pair of words in part\(8, \d\)"):
        list(steps.part_signals(8))


def test_weights_of_the_window(corpora):
    weights = jaxmeta.text.inverse_distance(5)
    (weighted,) = build_sources(recipes(corpora)[:1], size=SIZE - 5, weights=weights)
    (plain,) = build_sources(recipes(corpora)[:1], size=SIZE - 5)
    assert weighted.spectrum.values[0] < plain.spectrum.values[0]


class Calls:
    """Count the steps that are really taken."""

    STEPS = (
        "build_vocabulary", "count_windows", "noise_std", "eigenvalue_density",
        "leading_eigenpairs",
    )  # fmt: skip

    def __init__(self, monkeypatch):
        self.made = dict.fromkeys(self.STEPS, 0)
        for name in self.STEPS:
            monkeypatch.setattr(_steps, name, self.counted(name, getattr(_steps, name)))

    def counted(self, name, function):
        def call(*arguments, **options):
            self.made[name] += 1
            return function(*arguments, **options)

        return call

    def taken(self):
        made, self.made = tuple(self.made.values()), dict.fromkeys(self.STEPS, 0)
        return made


def same(one, other):
    for x, y in zip(one, other, strict=True):
        assert (x.name, x.words, x.sigma, x.rank, x.k) == (y.name, y.words, y.sigma, y.rank, y.k)
        np.testing.assert_array_equal(x.embedding, y.embedding)


def test_the_cache_repeats_only_what_has_changed(corpora, tmp_path, monkeypatch):
    calls = Calls(monkeypatch)
    build = functools.partial(
        build_sources, recipes(corpora), size=SIZE - 5, window=3, cache=tmp_path / "cache"
    )
    first = build()
    assert calls.taken() == (2, 2, 3, 3, 3)
    same(build(workers=2), first)
    assert calls.taken() == (0, 0, 0, 0, 0)
    build(window=2)
    assert calls.taken() == (0, 2, 3, 3, 3)
    build(weights=(1.0, 0.5, 0.25))
    assert calls.taken() == (0, 0, 3, 3, 3)
    build(tolerance=1e-2)
    assert calls.taken() == (0, 0, 0, 0, 3)
    build(min_count=2)  # gives the same words
    assert calls.taken() == (2, 0, 0, 0, 0)


@pytest.fixture
def steps(monkeypatch):
    """Few eigenpairs at a time, so that some settings need more than others."""
    monkeypatch.setattr(_steps, "RANKS", 2)
    return Calls(monkeypatch)


def test_another_seed_recounts_halves_alone(corpora, tmp_path, steps):
    """The whole, its density and its eigenpairs do not depend on how it is split."""
    settings = {"size": SIZE - 5, "window": 3, "rule": "paper-spiked"}  # few: no k needs more pairs
    build = functools.partial(build_sources, recipes(corpora), **settings, cache=tmp_path)
    first = build(seed=3)
    assert steps.taken()[:4] == (2, 2, 3, 3)
    for options in ({"seed": 1}, {"contiguous": True}):
        other = build(**options)
        assert steps.taken() == (0, 2, 3, 0, 0)
        same(other, build_sources(recipes(corpora), **settings, **options))
        assert all(x.sigma != y.sigma for x, y in zip(first, other, strict=True))
        steps.taken()
    same(build(seed=3), first)
    assert steps.taken() == (0, 0, 0, 0, 0)


def test_eigenpairs_are_computed_only_if_more_are_needed(corpora, tmp_path, steps):
    settings = {"size": SIZE - 5, "window": 3}
    build = functools.partial(build_sources, recipes(corpora)[:1], **settings, cache=tmp_path)
    known, again = 0, []
    for options in ({"alpha": 1.0}, {"rule": "released"}, {"rule": "rie"}, {"alpha": 0.25}):
        (source,) = build(**options)
        rank = len(source.spectrum.values)
        again.append(rank > known)
        assert steps.taken()[1:] == (len(again) == 1,) * 3 + (again[-1],)
        known = max(known, rank)
        same((source,), build_sources(recipes(corpora)[:1], **settings, **options))
        steps.taken()
    assert again == [True, False, True, False]


class Shifted:
    """A signal with a state."""

    def __init__(self, by):
        self.by = by

    def signal(self, counts):
        found = log_count(counts)
        found.data = found.data * self.by
        return found


def test_signals_of_one_name_are_told_apart_by_their_state(corpora, tmp_path):
    given = [Recipe(f"by {by}", corpora[0], Shifted(by).signal) for by in (1.0, 5.0)]
    settings = {"size": SIZE - 5, "window": 3, "rule": "spiked"}
    plain = build_sources(given, **settings)
    for _ in range(2):
        same(build_sources(given, cache=tmp_path, **settings), plain)
    assert plain[1].sigma > 4 * plain[0].sigma


def test_files_are_known_by_what_they_hold(corpora, tmp_path, monkeypatch):
    calls = Calls(monkeypatch)
    copy = tmp_path / "other name.txt"
    copy.write_bytes(corpora[0].path.read_bytes())
    settings = {"size": SIZE - 5, "cache": tmp_path / "cache"}
    first = build_sources(recipes(corpora)[:1], **settings)
    calls.taken()
    moved = Recipe("GloVe", Corpus(copy, lines_are_documents=True), log_count)
    (found,) = build_sources([moved], **settings)
    # Coins of the split depend on the name, and nothing else does.
    assert calls.taken() == (0, 1, 1, 0, 0)
    same([found], build_sources([moved], size=SIZE - 5))
    assert found.sigma != first[0].sigma
    elsewhere = tmp_path / "deep" / corpora[0].path.name
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(copy.read_bytes())
    calls.taken()
    again = Recipe("GloVe", Corpus(elsewhere, lines_are_documents=True), log_count)
    same(build_sources([again], **settings), first)
    assert calls.taken() == (0, 0, 0, 0, 0)
    copy.write_text(copy.read_text() + "ba " * 50)
    build_sources([moved], **settings)
    assert calls.taken() == (1, 1, 1, 1, 1)


def test_an_interrupted_run_goes_on(corpora, tmp_path, monkeypatch):
    settings = {"size": SIZE - 5, "cache": tmp_path / "cache"}
    with monkeypatch.context() as patch:
        patch.setattr(_steps, "leading_eigenpairs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build_sources(recipes(corpora), **settings)
    calls = Calls(monkeypatch)
    whole = build_sources(recipes(corpora), **settings)
    assert calls.taken() == (0, 1, 2, 2, 3)  # counts of b, and all but the first noise and density
    same(whole, build_sources(recipes(corpora), size=SIZE - 5))


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_a_full_disk_loses_nothing(corpora, tmp_path, monkeypatch):
    settings = {"size": SIZE - 5, "cache": tmp_path / "cache"}
    build_sources(recipes(corpora)[:1], **settings)
    kept = {path: path.read_bytes() for path in (tmp_path / "cache").iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(OSError, match=r"could not be written .* free some space"):
            build_sources(recipes(corpora)[:1], seed=5, **settings)
    assert {path: path.read_bytes() for path in (tmp_path / "cache").iterdir()} == kept


def full(file, **_):
    with open(file, "wb") as stream:
        stream.write(b"half")
    raise OSError(errno.ENOSPC, "No space left on device")


def test_functions_without_a_name(corpora, tmp_path):
    recipe = Recipe("GloVe", corpora[0], lambda counts: log_count(counts))
    (source,) = build_sources([recipe], size=SIZE - 5)
    (expected,) = build_sources(recipes(corpora)[:1], size=SIZE - 5)
    assert source.sigma == expected.sigma
    with pytest.raises(ValueError, match=r"cache: got .*<lambda>.* pass cache=None"):
        build_sources([recipe], size=SIZE - 5, cache=tmp_path)


def dense(counts):
    return jnp.asarray(log_count(counts).toarray())


def several(corpora):
    return Recipe("x", Corpus([corpus.path for corpus in corpora]), ppmi)


def test_bad_input(corpora, tmp_path, hooked):
    one = recipes(corpora)[:1]

    def rejected(message, *arguments, error=ValueError, **options):
        with pytest.raises(error, match=message):
            build_sources(*arguments, **options)

    rejected("recipes: got the names \\[\\]", [])
    rejected("recipes: got the names .*GloVe.*GloVe", one * 2)
    rejected("rule: got 'best', expected one of 'paper', 'paper-spiked'", one, rule="best")
    rejected("alpha: got -1.0", one, alpha=-1.0)
    rejected('alpha: got 0.25, expected 0.5 with the rule "rie"', one, alpha=0.25, rule="rie")
    rejected("size: got 99, expected 1 to 40; the intersection", one, size=99)
    for wrong in ({"window": 0}, {"tolerance": 0.0}, {"workers": 0}):
        absent = [Recipe("x", Corpus(tmp_path / "absent"), ppmi)]  # noticed before it is looked for
        rejected(f"{next(iter(wrong))}: got 0", absent, **wrong)
    rejected("cache: got .*, a file, expected a folder", one, cache=corpora[0].path)
    rejected("split: got a.txt and b.txt", [several(corpora)], size=SIZE, contiguous=True)
    tiny = tmp_path / "tiny.txt"
    tiny.write_text("a b c d e f g")
    rejected("split: got no pair of words", [Recipe("x", Corpus(tiny), ppmi)], size=3)
    if not hooked:
        wrong = Recipe("x", corpora[0], dense)
        rejected("signal of x: got a .*, expected a SciPy", [wrong], size=SIZE, error=TypeError)


def test_workers_count(corpora, monkeypatch):
    asked = []

    def count(*arguments, workers, **settings):
        asked.append(workers)
        return jaxmeta.text.count_windows(*arguments, **settings)

    monkeypatch.setattr(_steps, "count_windows", count)
    build_sources(recipes(corpora)[:1], size=SIZE - 5, workers=3)
    assert asked == [3]


def test_progress_names_sources(corpora):
    stages = {}
    build_sources(recipes(corpora), size=SIZE - 5, progress=stages.__setitem__)
    assert {"vocabulary", "counts", "GloVe noise", "SGNS noise", "LSA noise"} <= set(stages)
    assert set(stages.values()) == {1.0}
