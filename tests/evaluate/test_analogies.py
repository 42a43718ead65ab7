"""Analogies against dense formulas in float64 and gensim; blocks, ties and what is left out."""

import os
import pathlib

import numpy as np
import pytest
from helpers import EPS, IN_64_BIT
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxmeta.evaluate import analogies as module
from jaxmeta.evaluate.analogies import analogy
from jaxmeta.evaluate.readers import Questions
from jaxmeta.evaluate.scores import proportion_interval
from jaxmeta.evaluate.word_similarity import common_words
from jaxmeta.files.vectors import Vectors, read_vectors, to_gensim

RULES = (module.three_cos_add, module.paper_cos_add, module.three_cos_mul)


def words_of(n):
    return tuple(f"w{i}" for i in range(n))


def asking(rows, words=None, sections=None, name="toy"):
    words = words or [f"w{i}" for i in range(np.max(rows) + 1)]
    questions = tuple(tuple(words[i] for i in row) for row in rows)
    return Questions(name, questions, tuple(sections or ["all"] * len(questions)))


def dense_scores(matrix, asked, rule):
    """Scores of all words for one question, straight from the formulas, in float64."""
    matrix = np.asarray(matrix, np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    units = matrix / np.where(lengths == 0, 1, lengths)
    if rule is module.three_cos_add:
        a, b, c = units[asked]
        scores = units @ (b - a + c)
    elif rule is module.paper_cos_add:
        a, b, c = matrix[asked]
        scores = units @ (b - a + c) / max(np.linalg.norm(b - a + c), 1e-300)
    else:
        a, b, c = (units @ units[asked].T).T / 2 + 0.5
        scores = b * c / (a + 0.001)
    scores[asked] = -np.inf
    return scores


def clear_questions(rng, matrix, rule, margin=500 * EPS):
    """Thirty questions with their two best answers, such as rounding does not decide."""
    rows = []
    while len(rows) < 30:
        asked = rng.choice(len(matrix), 3, replace=bool(rng.integers(2)))
        scores = dense_scores(matrix, asked, rule)
        best, second = np.argsort(-scores)[:2]
        if scores[best] - scores[second] > margin:
            rows.append((*asked, best, second))
    return np.array(rows)


def answered(vectors, rows, rule):
    """Whether the fourth word of each row is the answer.

    All words are asked for, so that numbers of words and of questions are those of the last call,
    and nothing is compiled again.
    """
    n = len(vectors.words)
    every = np.resize(np.arange(n), (-(-n // 3), 3))
    filled = np.concatenate([rows, np.pad(every, ((0, 0), (0, 1)))])
    (total,) = analogy(vectors, asking(filled, vectors.words), method=rule)
    return total.items[: len(rows)]


def check(rng, vectors, rule, **settings):
    rows = clear_questions(rng, vectors.matrix, rule, **settings)
    assert answered(vectors, rows[:, :4], rule).all()
    assert not answered(vectors, rows[:, [0, 1, 2, 4]], rule).any()


def some_vectors(rng, n=50, k=7):
    """Of lengths that differ, and with a word of zeros."""
    matrix = rng.normal(size=(n, k)) * rng.uniform(0.2, 5, size=(n, 1))
    matrix[n // 2] = 0
    return Vectors(words_of(n), matrix.astype(np.float64 if IN_64_BIT else np.float32))


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), rule=st.sampled_from(RULES))
def test_answers_are_those_of_the_formulas(seed, rule):
    rng = np.random.default_rng(seed)
    check(rng, some_vectors(rng), rule)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("table", "scores"), [(1, 1), (1, 100), (400, 17), (10**6, 1)])
def test_blocks_do_not_matter(rng, monkeypatch, rule, table, scores):
    monkeypatch.setattr(module, "TABLE", table)
    monkeypatch.setattr(module, "SCORES", scores)
    monkeypatch.setattr(module, "LEAST", 8)
    check(rng, some_vectors(rng, n=53), rule)


@pytest.mark.one_leg
def test_the_rules_differ(rng):
    """Otherwise the tests above could not tell them apart."""
    vectors = some_vectors(rng, n=200)
    rows = rng.integers(200, size=(200, 3))
    answers = [
        [np.argmax(dense_scores(vectors.matrix, row, rule)) for row in rows] for rule in RULES
    ]
    for i in range(3):
        assert np.mean(np.array(answers[i]) != answers[i - 1]) > 0.1


def test_vectors_of_one_length_make_two_rules_the_same(rng):
    vectors = some_vectors(rng)
    vectors.matrix[25] = 1
    vectors.matrix[:] /= np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    rows = clear_questions(rng, vectors.matrix, module.three_cos_add)
    assert answered(vectors, rows[:, :4], module.paper_cos_add).all()


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [1e-30, 1e37])
def test_scale_does_not_matter(rng, rule, size):
    vectors = some_vectors(rng)
    rows = clear_questions(rng, vectors.matrix, rule)
    matrix = vectors.matrix * vectors.matrix.dtype.type(size)
    scaled = Vectors(vectors.words, matrix)
    assert answered(scaled, rows[:, :4], rule).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtypes(rng, dtype):
    matrix = rng.normal(size=(50, 7)).astype(dtype)
    margin = 500 * (np.finfo(np.float32).eps if dtype != np.float64 else EPS)
    check(rng, Vectors(words_of(50), matrix), module.three_cos_add, margin=margin)


# Candidates

AXES = np.eye(4, dtype=np.float32)


def test_of_equal_candidates_the_first_wins(monkeypatch):
    """In one block of candidates, and in two."""
    matrix = np.concatenate([AXES[:3], AXES[[3]], AXES[[1]], AXES[[3]], AXES[[1]]])
    rows = [(0, 1, 3, 4), (0, 1, 3, 5), (0, 1, 3, 6)]
    for least in (256, 2):
        monkeypatch.setattr(module, "LEAST", least)
        monkeypatch.setattr(module, "TABLE", 1)
        (total,) = analogy((words_of(7), matrix), asking(rows))
        np.testing.assert_array_equal(total.items, [True, False, False])


def test_a_query_of_zeros_is_answered_by_the_first():
    """b - a + c = 0: all candidates tie."""
    matrix = np.concatenate([AXES[1:2], AXES[:1] * [[3], [1], [2], [-1]], AXES[2:]])
    rows = [(1, 2, 3, 0), (1, 2, 3, 4), (1, 2, 3, 5), (0, 0, 0, 1)]
    (total,) = analogy((words_of(7), matrix), asking(rows), method=module.paper_cos_add)
    np.testing.assert_array_equal(total.items, [True, False, False, True])


def test_words_of_the_question_are_no_answer():
    """Even if no other word is left, and even if one of them is the fourth word."""
    for n in (1, 2, 3):
        rows = np.stack(np.meshgrid(*[np.arange(n)] * 4), axis=-1).reshape(-1, 4)
        (total,) = analogy((words_of(n), AXES[:n]), asking(rows))
        assert total.covered == len(rows)
        others = [row[3] not in row[:3] for row in rows]
        assert not (total.items & ~np.array(others)).any()
    # b would be nearest.
    matrix = np.array([[1, 0], [1.1, 2], [0.9, 0.1], [0, 1]], np.float32)
    (total,) = analogy((words_of(4), matrix), asking([(0, 1, 2, 3), (0, 1, 2, 1)]))
    np.testing.assert_array_equal(total.items, [True, False])


def test_a_word_of_zeros_can_win():
    """Against words that are all on the other side."""
    matrix = np.array([[1, 0], [-1, 0], [1, 1], [0, 0], [1, 0.2], [2, -3]], np.float32)
    (total,) = analogy((words_of(6), matrix), asking([(0, 1, 1, 3), (0, 1, 1, 4)]))
    np.testing.assert_array_equal(total.items, [True, False])


def test_what_fills_up_a_block_is_no_answer(monkeypatch):
    """All candidates are on the other side, and so further away than zeros would be."""
    monkeypatch.setattr(module, "TABLE", 1)
    monkeypatch.setattr(module, "LEAST", 4)  # 7 words in blocks of 4
    matrix = np.array([[1, 0], [-1, 0], [1, 1], [1, 4], [1, 2], [1, 3], [1, 0]], np.float32)
    (total,) = analogy((words_of(7), matrix), asking([(0, 1, 1, 3), (0, 1, 1, 5)]))
    np.testing.assert_array_equal(total.items, [True, False])


def test_vocabulary_restricts_candidates_and_questions(rng):
    vectors = some_vectors(rng)
    kept = np.sort(rng.permutation(50)[:30])
    rows = clear_questions(rng, vectors.matrix[kept], module.three_cos_add)[:, :4]
    questions = asking(kept[rows], vectors.words)
    vocabulary = common_words(vectors, {f"w{i}": [0.0] for i in [*kept, 99]})
    (total,) = analogy(vectors, questions, vocabulary=vocabulary)
    assert total.value == 1
    assert analogy(vectors, questions)[0].value < 1
    # As if the others had never been there.
    alone = Vectors(tuple(vectors.words[i] for i in kept), vectors.matrix[kept])
    everything = asking(rng.integers(50, size=(200, 4)), vectors.words)
    one, other = analogy(vectors, everything, vocabulary=vocabulary), analogy(alone, everything)
    np.testing.assert_array_equal(one[0].items, other[0].items)
    assert one[0].covered == other[0].covered < 200


@pytest.mark.one_leg
def test_case():
    vectors = dict(zip(("man", "King", "king", "woman", "queen"), np.eye(5) + 0.1, strict=True))
    vectors["queen"] = vectors["king"] - vectors["man"] + vectors["woman"]
    vectors["emperor"] = vectors["King"] - vectors["man"] + vectors["woman"]
    questions = (
        ("Man", "king", "WOMAN", "Queen"),
        ("Man", "KING", "WOMAN", "emperor"),
        ("man", "King", "woman", "Emperor"),
        ("man", "king", "boy", "prince"),
    )
    (total,) = analogy(vectors, Questions("toy", questions, ("all",) * 4))
    np.testing.assert_array_equal(total.items, [True, False, True])
    assert (total.covered, total.total) == (3, 4)


# Parts


@pytest.mark.one_leg
def test_sections_and_kinds(rng):
    vectors = some_vectors(rng)
    rows = clear_questions(rng, vectors.matrix, module.three_cos_add)[:20]
    rows[::3, 3] = rows[::3, 4]  # wrong
    sections = ["gram1-x"] * 5 + ["city"] * 6 + ["gram2-y"] * 7 + ["void"] * 2
    words = [list(row) for row in asking(rows[:, :4], vectors.words).words]
    words[6][2] = words[18][0] = words[19][3] = "missing"
    found = analogy(vectors, Questions("Google", tuple(map(tuple, words)), tuple(sections)))
    right = np.arange(20) % 3 > 0
    parts = {
        "Google": [*range(6), *range(7, 18)],
        "Google: semantic": [5, *range(7, 11)],
        "Google: syntactic": [*range(5), *range(11, 18)],
        "Google: gram1-x": range(5),
        "Google: city": [5, *range(7, 11)],
        "Google: gram2-y": range(11, 18),
    }
    assert [score.task for score in found] == list(parts)
    assert [score.total for score in found] == [20, 8, 12, 5, 6, 7]
    for score, part in zip(found, parts.values(), strict=True):
        np.testing.assert_array_equal(score.items, right[list(part)])
        hits, n = int(right[list(part)].sum()), len(part)
        assert (score.metric, score.value, score.covered) == ("accuracy", hits / n, n)
        assert (score.low, score.high) == proportion_interval(hits, n)
        assert score.gold is None


@pytest.mark.one_leg
@pytest.mark.parametrize("sections", [("a", "b"), ("gram1", "gram2")])
def test_sections_of_one_kind_have_no_subtotals(rng, sections):
    found = analogy(some_vectors(rng), asking([(0, 1, 2, 3), (3, 2, 1, 0)], sections=sections))
    assert [score.task for score in found] == ["toy", *(f"toy: {name}" for name in sections)]


# Compilation and progress


@pytest.mark.one_leg
def test_compiles_once(rng, monkeypatch, compilations):
    """Several blocks of candidates and of questions, and other vectors after them."""
    monkeypatch.setattr(module, "TABLE", 1)
    monkeypatch.setattr(module, "LEAST", 16)
    monkeypatch.setattr(module, "SCORES", 100)
    traces = []

    def rule(a, b, c):
        traces.append((a.cosines.shape, a.lengths.shape))
        return module.three_cos_add(a, b, c)

    rows = rng.integers(50, size=(45, 4))
    questions = asking(rows)
    found = analogy(some_vectors(rng), questions, method=rule)
    assert traces == [((7, 13), (7, 1))]  # 50 in blocks of at most 16, 45 in blocks of at most 7
    compilations.clear()
    assert analogy(some_vectors(rng), questions, method=rule)[0].covered == found[0].covered
    assert len(traces) == 1
    assert not compilations


@pytest.mark.one_leg
def test_progress(rng, monkeypatch):
    monkeypatch.setattr(module, "TABLE", 1)
    monkeypatch.setattr(module, "LEAST", 20)
    told = []
    analogy(some_vectors(rng), asking([(0, 1, 2, 3)]), progress=lambda *step: told.append(step))
    assert told == [("analogies", x) for x in (0, 17 / 50, 34 / 50, 1)]


# What is refused


@pytest.mark.one_leg
def test_refusals(rng):
    vectors = some_vectors(rng)
    message = "^toy: got 0 covered items, expected 1 or more of the 1; use vectors with more"
    with pytest.raises(ValueError, match=message):
        analogy(vectors, Questions("toy", (("w1", "w2", "w3", "?"),), ("all",)))
    with pytest.raises(ValueError, match=message):
        analogy(vectors, asking([(0, 1, 2, 3)]), vocabulary=())
    with pytest.raises(ValueError, match="of the 0"):
        analogy(vectors, Questions("toy", (), ()))
    for wrong in (np.nan, np.inf):
        vectors.matrix[9, 1] = wrong
        with pytest.raises(ValueError, match="vectors: got NaN or infinity in row 9"):
            analogy(vectors, asking([(0, 1, 2, 3)]))
        vocabulary = set(vectors.words) - {"w9"}
        assert len(analogy(vectors, asking([(0, 1, 2, 3)]), vocabulary=vocabulary)) == 1


# Second opinions


def by_gensim(vectors, questions, path):
    """Whether gensim has each question right, by section."""
    pytest.importorskip("gensim")
    with path.open("w") as file:
        for name in dict.fromkeys(questions.sections):
            file.write(f": {name}\n")
            for words, section in zip(questions.words, questions.sections, strict=True):
                if section == name:
                    file.write(" ".join(words) + "\n")
    value, sections = to_gensim(vectors).evaluate_word_analogies(
        str(path), restrict_vocab=len(vectors.words)
    )
    counts = {x["section"]: (len(x["correct"]), len(x["incorrect"])) for x in sections}
    return value, counts


def check_against_gensim(vectors, questions, path):
    total, *parts = analogy(vectors, questions)
    value, counts = by_gensim(vectors, questions, path)
    assert total.value == pytest.approx(value, abs=1e-6)
    assert sum(counts["Total accuracy"]) == total.covered
    found = {score.task.partition(": ")[2]: score.items for score in parts}
    for name in dict.fromkeys(questions.sections):
        items = found.get(name, np.zeros(0, bool))
        assert counts[name] == (items.sum(), (~items).sum())
    return total


@pytest.mark.one_leg  # gensim computes in float32
def test_agrees_with_gensim(rng, tmp_path):
    """Vectors in which analogies hold, more or less."""
    bases, shifts = rng.normal(size=(60, 20)), rng.normal(size=(2, 20))
    matrix = np.concatenate([bases, bases + shifts[0], bases + shifts[1]])
    matrix = (matrix + 1.0 * rng.normal(size=matrix.shape)).astype(np.float32)
    pairs = rng.integers(60, size=(400, 2))
    kinds = np.arange(400) % 2 + 1
    rows = [(i, i + 60 * kind, j, j + 60 * kind) for (i, j), kind in zip(pairs, kinds, strict=True)]
    words = [*words_of(150), *(f"missing{i}" for i in range(30))]
    sections = [f"gram{kind}" if kind == 1 else "other" for kind in kinds]
    total = check_against_gensim(
        Vectors(words_of(150), matrix[:150]), asking(rows, words, sections), tmp_path / "q.txt"
    )
    assert 0.2 < total.value < 0.9
    assert total.covered < 400


@pytest.mark.skipif("JAXMETA_DATA" not in os.environ, reason="JAXMETA_DATA is not set")
@pytest.mark.one_leg
def test_agrees_with_gensim_on_google(tmp_path):
    """Every eighth question."""
    folder = pathlib.Path(os.environ["JAXMETA_DATA"])
    vectors = read_vectors(folder / "vectors" / "glove-100d-56k.txt.gz", limit=20_000)
    words, sections = [], []
    for line in (folder / "analogy" / "questions-words.txt").read_text().splitlines():
        if line.startswith(":"):
            section = line[1:].strip()
        else:
            words.append(tuple(line.split()))
            sections.append(section)
    questions = Questions("Google", tuple(words[::8]), tuple(sections[::8]))
    total = check_against_gensim(vectors, questions, tmp_path / "q.txt")
    assert total.total == 19_544 / 8
    assert total.value > 0.5
