"""Word forms, and how far they stand out, against all pairs of words, written out in float64."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import EPS, assert_close, cast, exactly, rotation, rounded

from jaxmeta.diagnosis import diagnose
from jaxmeta.spelling import Separation, WordForms, separation, word_forms

pytestmark = pytest.mark.slow

STEMS = ["".join(x) for x in itertools.product("abcd", repeat=4)][:100]
RARE = ["".join(x) for x in itertools.product("efghi", repeat=3)][:100]
VOCABULARY = [*STEMS, *(w + "s" for w in STEMS), *map("".join, zip(STEMS, RARE, strict=True))]
PAIRS = word_forms(VOCABULARY)


def by_all_pairs(source, pairs):
    unit = source / np.linalg.norm(source, axis=1, keepdims=True)
    cosines = unit @ unit.T
    above = [cosines[tuple(rows.T)].mean() - cosines.mean() for rows in pairs]
    return np.array(above) / cosines.std()


def knowing(rng, forms=0.1, spelled=0.0, width=24):
    """A source in which forms are near their words, and so are words spelled alike if asked."""
    rows = rng.normal(size=(300, width))
    rows[100:200] = rows[:100] + forms * rows[100:200]
    rows[200:] += spelled * rows[:100]
    return rounded(rows)


def numbers(found):
    return exactly(jnp.stack(found))


@pytest.mark.one_leg
def test_forms_of_a_short_list():
    stems = ["walk", "talk", "plan", "naïve", "слово", "car"]
    words = [*stems, *(w + "s" for w in stems), "planet", "walking", "Walks", "plan-s", "walkings4"]
    found = word_forms(words, rare=1)
    assert [(words[a], words[b]) for a, b in found.related] == [
        (w, w + "s")
        for w in stems[:-1]  # "car" is too short to be a stem
    ]
    assert [(words[a], words[b]) for a, b in found.chance] == [
        ("plan", "planet"),
        ("walk", "walking"),
    ]
    assert found.related.dtype == np.int32
    assert not found.enough
    assert word_forms(words).chance.tolist() == found.chance.tolist()
    more = word_forms(words, share=0.8, rare=1)  # 5 of 7 are fewer than that
    assert [len(x) for x in more] == [0, 2]


@pytest.mark.one_leg
@pytest.mark.parametrize("words", [[], ["a", "ab"], [f"word{i}" for i in range(200)]])
def test_no_forms(words):
    found = word_forms(words)
    assert [x.shape for x in found] == [(0, 2), (0, 2)]
    assert np.isnan(numbers(separation(jnp.eye(4), found))).all()


@pytest.mark.one_leg
def test_no_pair_comes_twice():
    words = [*VOCABULARY, *VOCABULARY]
    found = word_forms(words)
    assert PAIRS.enough
    for rows, expected in zip(found, PAIRS, strict=True):
        assert len({(words[a], words[b]) for a, b in rows}) == len(rows) == len(expected)


@pytest.mark.parametrize("mean", [0.0, 2.0, 50.0])
def test_separation_over_all_pairs(rng, mean):
    """Cosines of a long mean vector are all near 1: it is their deviations that count."""
    source = rounded(knowing(rng) + mean)
    expected = by_all_pairs(source, PAIRS)
    found = separation(cast(source), PAIRS)
    unit = source / np.linalg.norm(source, axis=1, keepdims=True)
    # A cosine is rounded at 1, and varies by the squares of deviations.
    varies = np.mean(np.sum((unit - unit.mean(axis=0)) ** 2, axis=1))
    scale = np.abs(expected).max() * (1 + 1 / varies)
    assert_close(numbers(found), expected, scale=scale, terms=64)
    assert_close(found.difference, expected[0] - expected[1], scale=scale, terms=64)
    assert 64 * EPS * scale < 0.2


@pytest.mark.one_leg
def test_what_separation_does_not_depend_on(rng):
    source = knowing(rng)
    expected = numbers(separation(cast(source), PAIRS))
    lengths = rng.uniform(0.1, 9, (300, 1))
    order = rng.permutation(300)
    place = np.argsort(order)
    same = {
        "rotation": (source @ rotation(rng, 24), PAIRS),
        "scale": (1e25 * source, PAIRS),
        "lengths of rows": (lengths * source, PAIRS),
        "columns twice": (np.append(source, source, axis=1), PAIRS),
        "order": (source[order], WordForms(*(place[rows] for rows in PAIRS))),
        "rows of zeros": (np.append(source, np.zeros((50, 24)), axis=0), PAIRS),
    }
    for other, pairs in same.values():
        found = numbers(separation(cast(other), pairs))
        assert_close(found, expected, scale=8, terms=128)


@pytest.mark.one_leg
def test_pairs_with_rows_of_zeros_are_left_out(rng):
    source = knowing(rng)
    gone = np.array([3, 7, 104])  # stems, and the form of another
    source[gone] = 0
    kept = [rows[~np.isin(rows, gone).any(axis=1)] for rows in PAIRS]
    place = np.cumsum(~np.isin(np.arange(300), gone)) - 1
    expected = by_all_pairs(np.delete(source, gone, axis=0), [place[rows] for rows in kept])
    assert_close(numbers(separation(cast(source), PAIRS)), expected, scale=8, terms=128)


@pytest.mark.one_leg
def test_noise_and_shuffled_rows_have_none(rng):
    source = knowing(rng)
    assert separation(cast(source), PAIRS).related > 3
    for other in (rng.permutation(source), rng.normal(size=source.shape)):
        # Means of 100 pairs are within 4 standard errors.
        assert np.abs(numbers(separation(cast(other), PAIRS))).max() < 4 / 10


@pytest.mark.one_leg
def test_too_few_pairs_and_cosines_that_do_not_vary(rng):
    source = cast(knowing(rng))
    few = WordForms(PAIRS.related, PAIRS.chance[:49])
    assert not few.enough
    found = separation(source, few)
    assert (np.isfinite(found.related), np.isnan(found.chance)) == (True, True)
    assert np.isnan(found.difference)
    gone = source.at[150:200].set(0)
    assert np.isfinite(separation(gone, PAIRS).related)  # 50 of 100 are left
    assert np.isnan(separation(gone.at[0].set(0), PAIRS).related)
    for flat in (jnp.ones_like(source), 0 * source, jnp.full_like(source, 0.1)):
        assert np.isnan(numbers(separation(flat, PAIRS))).all()


def test_gradients_are_finite(rng):
    for source in (knowing(rng), 0 * knowing(rng), np.ones((300, 24)), np.eye(300, 24)):
        found = jax.grad(lambda e: jnp.nan_to_num(separation(e, PAIRS).difference))(cast(source))
        assert np.isfinite(found).all()


@pytest.mark.one_leg
def test_wrong_arguments():
    with pytest.raises(
        ValueError, match=r"pairs\.chance: got int32 of shape \(4,\), expected inte"
    ):
        separation(jnp.eye(4), WordForms(PAIRS.related, np.zeros(4, np.int32)))
    with pytest.raises(
        ValueError, match=r"pairs\.related: got float32 of shape \(4, 2\), expected"
    ):
        separation(jnp.eye(4), WordForms(np.zeros((4, 2), np.float32), PAIRS.chance))
    with pytest.raises(ValueError, match="rare: got -1, expected at least 0"):
        word_forms(["a"], rare=-1)


NAMES = ("good", "poor")


def said(*sources, names=NAMES, words=VOCABULARY):
    return diagnose(cast(sources), names=names, words=words).verdict


@pytest.mark.one_leg
def test_sentences_of_a_diagnosis(rng):
    good, poor = knowing(rng), knowing(rng, forms=4.0)
    spelled = knowing(rng, spelled=4.0)
    found = diagnose(cast((good, poor)), names=NAMES, words=VOCABULARY)
    (best, worst), _ = found.separations, found.standardised
    assert best.difference - worst.difference > 3
    assert found.verdict.endswith(
        f"good separates word forms far better than poor ({best.difference:.1f} against"
        f" {worst.difference:.1f}): poor may pull the combination below good alone."
    )
    row = f"good  {best.related:>5.2f}{best.chance:>8.2f}{best.difference:>7.2f}"
    assert row in found.report()
    assert "alone" not in said(good, good)
    noise = "no more alike in poor than other words: it may be noise, or its words may be in the"
    assert noise in said(good, rng.permutation(good))
    assert noise in said(good, rng.normal(size=good.shape) + 1)
    assert "Words spelled alike by chance stand out in poor too (" in said(good, spelled)


@pytest.mark.one_leg
def test_no_sentence_without_words_or_forms(rng):
    good, poor = knowing(rng), knowing(rng, forms=4.0)
    plain = diagnose(cast((good, poor)), names=NAMES)
    assert plain.separations == plain.standardised == ()
    unlike = diagnose(cast((good, poor)), names=NAMES, words=[f"word{i}" for i in range(300)])
    assert unlike.verdict == plain.verdict
    assert plain.report().startswith("300 words")
    assert "forms" not in plain.report() + unlike.report()
    gone = good.copy()
    gone[:60] = 0  # its words are missing
    assert "forms" not in said(gone, good)
    known = diagnose(cast((gone, good)), words=VOCABULARY).separations
    assert [isinstance(x, Separation) and bool(np.isnan(x.difference)) for x in known] == [
        True,
        False,
    ]
