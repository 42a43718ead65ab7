"""The diagnosis of a concatenation against all pairs of words, written out in float64."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from helpers import EPS, assert_close, cast, exactly, rotation, rounded
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from jaxmeta.diagnosis import cosine_shares, diagnose, disagreement

pytestmark = pytest.mark.slow

WORDS = 15


def unit(e):
    lengths = np.linalg.norm(e, axis=1, keepdims=True)
    return e / np.where(lengths == 0, 1, lengths)


def shares_by_pairs(sources):
    """Over all pairs of different words, one cosine and its terms at a time."""
    whole = unit(np.concatenate(sources, axis=1))
    off = ~np.eye(len(whole), dtype=bool)
    blocks = np.split(whole, np.cumsum([e.shape[1] for e in sources])[:-1], axis=1)
    cosines = (whole @ whole.T)[off]
    parts = [(b @ b.T)[off] for b in blocks]
    covariances = [np.mean((a - a.mean()) * (cosines - cosines.mean())) for a in parts]
    return np.array(covariances) / cosines.var()


def disagreement_by_pairs(sources):
    out = []
    cosines = [unit(e) @ unit(e).T for e in sources]
    for u in range(len(sources[0])):
        profiles = [np.delete(c[u], u) for c in cosines]
        pairs = itertools.combinations(profiles, 2)
        out.append(1 - np.mean([np.corrcoef(p, q)[0, 1] for p, q in pairs]))
    return np.array(out)


def hat(e):
    return e @ e.T


def cka_by_pairs(e, f):
    centring = np.eye(len(e)) - 1 / len(e)
    a, b = (centring @ hat(x) @ centring for x in (e, f))
    return np.sum(a * b) / (np.linalg.norm(a) * np.linalg.norm(b))


def pip_by_pairs(e, f):
    return np.linalg.norm(hat(e) / np.linalg.norm(hat(e)) - hat(f) / np.linalg.norm(hat(f)))


def overlap_by_pairs(e, f, k):
    u, v = (np.linalg.svd(x)[0][:, :k] for x in (e, f))
    return np.mean(np.linalg.svd(u.T @ v, compute_uv=False) ** 2)


KINDS = ("generic", "common direction", "duplicated", "one zero row", "zero source", "scales")


def draw(kind, rng, sizes=(3, 2, 4)):
    sources = [rng.normal(size=(WORDS, k)) * rng.uniform(0.5, 3) for k in sizes]
    if kind == "common direction":
        sources = [e + 20 * rng.normal(size=(1, e.shape[1])) for e in sources]
    if kind == "duplicated":
        sources[2][:, :3] = sources[0]
        sources[2][:, 3] = 0
    if kind == "one zero row":
        for e in sources:
            e[4] = 0
    if kind == "zero source":
        sources[1][:] = 0
    if kind == "scales":  # squares of these leave the range of float32
        sources = [e * 1e25 for e in sources]
    return tuple(map(rounded, sources))


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
def test_cosine_shares_over_all_pairs(kind, seed):
    sources = draw(kind, np.random.default_rng(seed))
    ours, expected = exactly(cosine_shares(cast(sources))), shares_by_pairs(sources)
    # Shares divide by the variance, so that rounding of cosines counts by its square root.
    whole = unit(np.concatenate(sources, axis=1))
    spread = (whole @ whole.T)[~np.eye(WORDS, dtype=bool)].std()
    size = np.abs(expected).sum() * (1 + 1 / spread) + 1 / (WORDS * spread**2)
    assert_close(ours, expected, scale=size, terms=64)
    assert_close(ours.sum(), 1, scale=np.abs(expected).sum() + 1)


def test_fifty_thousand_words(rng):
    """The square of their number is no 32-bit integer. Of 50 words there are 1,000 each."""
    copies = 1000
    few = [rounded(rng.normal(size=(50, k)) + 1) for k in (3, 2)]
    cosines = unit(np.concatenate(few, axis=1))
    terms = [b @ b.T for b in np.split(cosines, [3], axis=1)]
    pairs = copies**2 * np.ones((50, 50)) - copies * np.eye(50)  # of different rows
    total = sum(terms)
    mean = np.average(total, weights=pairs)
    expected = [np.average(term * (total - mean), weights=pairs) for term in terms]
    expected /= np.average((total - mean) ** 2, weights=pairs)
    sources = cast([np.tile(e, (copies, 1)) for e in few])
    assert_close(cosine_shares(sources), expected, scale=1, terms=256)


@given(seed=seeds)
def test_weights_are_those_of_the_concatenation(seed):
    rng = np.random.default_rng(seed)
    sources = draw("generic", rng)
    weights = (float(rounded(rng.uniform(0.2, 2))), rounded(rng.uniform(0.2, 2, 2)), 0.5)
    ours = cosine_shares(cast(sources), (weights[0], cast(weights[1]), 0.5))
    expected = shares_by_pairs([e * c for e, c in zip(sources, weights, strict=True)])
    assert_close(ours, expected, scale=8, terms=64)


@pytest.mark.one_leg
def test_a_common_direction_keeps_its_digits(rng):
    """Cosines from 0.9999 on: sums of their squares would lose their variance in float32."""
    sources = [rng.normal(size=(400, 5)) + 150 * np.ones((1, 5)) / 5**0.5 for _ in range(2)]
    sources = tuple(map(rounded, sources))
    ours, expected = cosine_shares(cast(sources)), shares_by_pairs(sources)
    whole = unit(np.concatenate(sources, axis=1))
    assert (whole @ whole.T).min() > 0.99
    assert_close(ours, expected, scale=1, terms=1e5)
    assert 1e5 * EPS < 0.02


@pytest.mark.one_leg
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_cosines_that_do_not_vary_have_no_shares(value):
    sources = (jnp.full((6, 2), value), jnp.full((6, 3), value))
    assert jnp.isnan(cosine_shares(sources)).all()
    assert jnp.isnan(cosine_shares((jnp.eye(6),))).all()
    assert jnp.isnan(cosine_shares((jnp.ones((1, 2)),))).all()


@pytest.mark.parametrize("kind", ["generic", "common direction", "scales"])
@given(seed=seeds)
def test_disagreement_over_all_other_words(kind, seed):
    sources = draw(kind, np.random.default_rng(seed))
    ours, expected = exactly(disagreement(cast(sources))), disagreement_by_pairs(sources)
    spread = min(
        np.delete(row, u).std() for e in sources for u, row in enumerate(unit(e) @ unit(e).T)
    )
    assert_close(ours, expected, scale=(1 + 1 / spread) ** 2, terms=64)


@pytest.mark.one_leg
def test_disagreement_of_rotated_and_unrelated_sources(rng):
    e = rounded(rng.normal(size=(WORDS, 4)))
    turned = 3 * e @ rotation(rng, 4)
    assert_close(disagreement(cast((e, turned))), np.zeros(WORDS), scale=1, terms=256)
    swapped = e.copy()
    swapped[[2, 9]] = e[[9, 2]]
    worst = np.argsort(-exactly(disagreement(cast((e, swapped)))))
    assert set(worst[:2].tolist()) == {2, 9}


@pytest.mark.one_leg
def test_words_without_a_profile(rng):
    e, f = rng.normal(size=(2, WORDS, 3))
    e[4] = 0
    scores = disagreement(cast((e, f)))
    np.testing.assert_array_equal(jnp.isnan(scores), np.arange(WORDS) == 4)
    assert jnp.isnan(disagreement((jnp.eye(6), jnp.eye(6)))).all()


@given(seed=seeds, kind=st.sampled_from(["generic", "common direction", "duplicated"]))
def test_numbers_of_a_diagnosis(seed, kind):
    sources = draw(kind, np.random.default_rng(seed))
    names = ("a", "b", "c")
    found = diagnose(cast(sources), names=names, k=2, top=4)
    whole = np.concatenate(sources, axis=1)
    everything = (*sources, whole)
    equal = shares_by_pairs([e / np.linalg.norm(e) for e in sources])
    now = shares_by_pairs(sources)
    wide = 1 + 1 / (unit(whole) @ unit(whole).T)[~np.eye(WORDS, dtype=bool)].std() ** 2
    for j, (part, e) in enumerate(zip((*found.sources, found.result), everything, strict=True)):
        lengths, values = np.linalg.norm(e, axis=1), np.linalg.svd(e, compute_uv=False)
        size = np.linalg.norm(e)
        assert part.name == (*names, "result")[j]
        assert part.dimensions == e.shape[1]
        assert part.dimension_share == e.shape[1] / 9
        assert_close(part.frobenius, size, scale=size)
        assert_close(part.row_norm, lengths.mean(), scale=size)
        assert_close(part.row_spread, lengths.std(), scale=size)
        assert_close(part.norm_share, (size / np.linalg.norm(whole)) ** 2, scale=1)
        mean = np.linalg.norm(e.mean(axis=0)) / np.sqrt(np.mean(lengths**2))
        assert_close(part.common_direction, mean, scale=1)
        assert_close(part.singular_values, values, scale=np.linalg.norm(whole), terms=64)
        rank = np.sum(values**2) ** 2 / np.sum(values**4)
        assert_close(part.effective_rank, rank, scale=rank * size / values[0], terms=64)
        assert_close(part.cosine_share, now[j] if j < 3 else 1, scale=wide, terms=64)
        assert_close(part.equal_norm_share, equal[j] if j < 3 else 1, scale=wide, terms=64)
    assert found.words == WORDS
    assert found.k == 2
    for i, j in itertools.product(range(4), repeat=2):
        e, f = everything[i], everything[j]
        lost = max(np.linalg.norm(x) / np.linalg.norm(x - x.mean(axis=0)) for x in (e, f)) ** 2
        assert_close(found.cka[i, j], cka_by_pairs(e, f), scale=lost, terms=128)
        assert_close(found.pip_distance[i, j], pip_by_pairs(e, f), scale=1, terms=128)
        values = [np.linalg.svd(x, compute_uv=False) for x in (e, f)]
        gap = min((v[1] - np.append(v, 0)[2]) / v[0] for v in values)
        if gap > 1e-3:
            overlap = overlap_by_pairs(e, f, 2)
            size = np.linalg.norm(whole) / min(np.linalg.norm(x) for x in sources)
            assert_close(found.overlap[i, j], overlap, scale=size / gap, terms=64)
    scores = exactly(disagreement(cast(sources)))
    rows, worst = zip(*found.disagreements, strict=True)
    np.testing.assert_array_equal(worst, np.sort(scores)[::-1][:4])
    np.testing.assert_array_equal(scores[list(rows)], worst)


@pytest.mark.one_leg
def test_weights_words_and_default_names(rng):
    first, second, third = cast(draw("generic", rng))
    words = [f"w{i}" for i in range(WORDS)]
    weights = (2.0, jnp.asarray([0.5, 3.0]), 1.0)
    found = diagnose((first, second, third), weights, words=words)
    same = diagnose((2 * first, second * weights[1][None, :], third), words=words)
    assert found.report() == same.report()
    assert found.k == 2  # the narrowest source has no more
    assert [part.name for part in found.sources] == ["source 0", "source 1", "source 2"]
    assert len(found.disagreements) == 10
    assert {word for word, _ in found.disagreements} <= set(words)
    assert diagnose((first, second, third), top=0).disagreements == ()


@pytest.mark.one_leg
def test_more_dimensions_than_words(rng):
    """Fewer rows than columns: R is wide."""
    sources = tuple(rounded(rng.normal(size=(5, k))) for k in (4, 7))
    found = diagnose(cast(sources), k=3)
    assert_close(found.cka[0, 1], cka_by_pairs(*sources), scale=4, terms=64)
    assert_close(found.pip_distance[0, 1], pip_by_pairs(*sources), scale=1, terms=64)
    values = np.linalg.svd(sources[1], compute_uv=False)
    assert_close(found.sources[1].singular_values, values, scale=values[0], terms=64)


@pytest.mark.one_leg
def test_zero_constant_and_deficient_sources(rng):
    e = rng.normal(size=(WORDS, 3))
    thin = np.outer(e[:, 0], np.ones(3))
    sources = cast((e, np.zeros((WORDS, 2)), np.ones((WORDS, 2)), thin))
    found = diagnose(sources, k=2)
    zero, constant = found.sources[1:3]
    assert (zero.effective_rank, zero.frobenius, zero.common_direction) == (0, 0, 0)
    assert_close(constant.common_direction, 1, scale=1)
    assert_close(constant.effective_rank, 1, scale=1)
    assert np.isnan(found.cka[0, 1:3]).all()
    assert_close(found.pip_distance[0, 1], 1, scale=1)
    assert np.isnan(found.overlap[0, 1:4]).all()
    assert "?" in found.report()
    assert "The mean vector of source 2 is 100% as long as its rows" in found.verdict


@pytest.mark.one_leg
def test_a_long_source_dominates_because_of_its_scale(rng):
    e, f = rng.normal(size=(2, 300, 8))
    e, f = (x / np.linalg.norm(x) for x in (e, f))
    verdict = diagnose(cast((e, 6 * f)), names=("News", "Web")).verdict
    assert verdict.startswith("Web dominates: it has 50% of the dimensions, and 100% of the cosine")
    assert "Its rows are 6 times as long as those of News: scale the sources" in verdict
    assert "even then" not in verdict
    balanced = diagnose(cast((e, f))).verdict
    assert balanced.startswith("No source dominates: the largest part of the cosine variance is 5")
    narrow = f * np.array([1, *[0.05] * 7])
    narrow /= np.linalg.norm(narrow)
    verdict = diagnose(cast((e, 6 * narrow)), names=("News", "Web")).verdict
    assert "even then, since its cosines vary more (effective rank 1 against 8)" in verdict
    verdict = diagnose(cast((e, narrow / 1.02)), names=("News", "Web")).verdict
    assert verdict.startswith("Web dominates")
    assert "At equal norms it would have" in verdict


@pytest.mark.one_leg
def test_other_verdicts(rng):
    e, f, g = cast(draw("generic", rng))
    assert diagnose((e,)).verdict == "There is one source, which cannot dominate another."
    assert "All other sources are zero." in diagnose((e, 0 * f, 0 * g)).verdict
    same = "All cosines of the result are the same, so no source decides anything."
    assert diagnose(tuple(map(jnp.ones_like, (e, f, g)))).verdict.startswith(same)
    assert diagnose((0 * e, 0 * f, 0 * g)).verdict == same


@pytest.mark.one_leg
def test_report_and_progress(rng):
    sources, stages = draw("generic", rng), []
    found = diagnose(
        cast(sources),
        names=("News", "Web", "Tweets"),
        progress=lambda stage, fraction: stages.append((stage, fraction)),
    )
    assert str(found) == repr(found) == found.report()
    lines = found.report().splitlines()
    assert lines[0] == "15 words, 3 sources, after weights"
    assert [line.split()[0] for line in lines[4:8]] == ["News", "Web", "Tweets", "result"]
    assert {len(line) for line in lines[3:8]} == {len(lines[3])}
    assert max(map(len, lines)) <= 90
    assert " ".join(found.report().split()).endswith(" ".join(found.verdict.split()))
    assert stages[-1] == ("diagnose", 1.0)
    assert stages == sorted(stages)


E = jnp.arange(12.0).reshape(4, 3)
WRONG = {
    "two words": (lambda: diagnose((E[:2],)), "sources: got 2 words, expected at least 3; cosines"),
    "names": (lambda: diagnose((E,), names=("a", "b")), "names: got 2 entries, expected 1"),
    "words": (lambda: diagnose((E,), words=["a"]), "words: got 1, expected 4; pass one for each"),
    "k": (lambda: diagnose((E,), k=0), "k: got 0, expected at least 1"),
    "top": (lambda: diagnose((E,), top=-1), "top: got -1, expected at least 0"),
    "NaN": (
        lambda: diagnose((E, E.at[2, 1].set(jnp.nan)), words=["a", "b", "c", "d"]),
        r"sources: got a value that is not finite in row 2 \('c'\) of the weighted",
    ),
    "weights": (lambda: diagnose((E,), (jnp.inf,)), "sources: got a value that is not finite in"),
    "one source": (lambda: disagreement((E,)), "sources: got 1, expected at least 2; a source"),
}


@pytest.mark.one_leg
@pytest.mark.parametrize("case", WRONG)
def test_bad_calls(case):
    call, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        call()
