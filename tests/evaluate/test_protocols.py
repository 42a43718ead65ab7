"""What the paper's text or its tools do otherwise: analogies, taggers, and files of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeta.evaluate import (
    DATASETS,
    TASKS,
    OtherEdition,
    Questions,
    TaggedText,
    analogy,
    load,
    paper_cos_add,
    released_tagging,
)
from jaxmeta.evaluate import taggers as module

pytestmark = [pytest.mark.one_leg, pytest.mark.slow]

WORDS = tuple(f"w{i}" for i in range(30))
KEY = jax.random.key(0)


def write(folder, name, *texts):
    for file, text in zip(DATASETS[name].files, texts, strict=True):
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


# Files

HEADER = "gold_label\tsentence1_parse\tsentence1\tsentence2\tcaptionID\n"


def test_snli(tmp_path):
    train = HEADER + "neutral\t( A )\tA man.\tB\t1\n-\t( A )\tC\tD\t2\n"
    dev = HEADER + "entailment\t( A )\tE\tF\t3\n"
    test = HEADER + "contradiction\t( A )\tG\tH\t4\n"
    write(tmp_path, "SNLI", train, dev, test)
    data = load("SNLI", tmp_path)
    assert data.first == (("a", "man", "."), ("e",), ("g",))
    assert data.second == (("b",), ("f",), ("h",))
    assert data.parts == ("train", "dev", "test")
    np.testing.assert_array_equal(data.labels, [0, 1, 2])  # as those of SICK
    assert np.isnan(data.scores).all()
    assert load("SNLI", tmp_path, lower=False).first[0] == ("A", "man", ".")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gold_label\ta\nneutral\tb\n", "line 1: got 'gold_label.*expected a header with gold"),
        (HEADER + "neutral\t( A )\tA\n", "line 2: got 3 columns, expected 5"),
        (HEADER + "maybe\t( A )\tA\tB\t1\n", "line 2: got 'maybe', expected one of neutral, ent"),
    ],
)
def test_malformed_snli(tmp_path, text, message):
    write(tmp_path, "SNLI", *[text] * 3)
    with pytest.raises(ValueError, match=message):
        load("SNLI", tmp_path)


def test_sentiwords(tmp_path):
    write(tmp_path, "SentiWords", "# a comment\nGood#a\t0.75\ngood#n\t0.5\nill#a\t-0.5\n")
    data = load("SentiWords", tmp_path)
    assert data.words == ("good", "good", "ill")
    np.testing.assert_array_equal(data.scores, [0.75, 0.5, -0.5])
    assert load("SentiWords", tmp_path, lower=False).words[0] == "Good"
    write(tmp_path, "SentiWords", "good\t0.75\n")
    with pytest.raises(ValueError, match="line 1: got 'good', expected a lemma, # and its part"):
        load("SentiWords", tmp_path)


def test_files_without_a_known_digest_warn_of_nothing(tmp_path, recwarn):
    write(tmp_path, "SentiWords", "good#a\t0.75\n")
    load("SentiWords", tmp_path)
    assert not [w for w in recwarn if w.category is OtherEdition]


# Analogies


def test_raw_vectors_against_a_loop(rng):
    """The word with the largest cosine to b - a + c, of vectors of very different lengths."""
    matrix = rng.normal(size=(30, 5)) * np.exp(rng.normal(size=(30, 1)))
    asked = [tuple(rng.choice(30, 4, replace=False)) for _ in range(60)]
    expected = []
    for a, b, c, d in asked:
        target = matrix[b] - matrix[a] + matrix[c]
        cosines = matrix @ target / np.linalg.norm(matrix, axis=1) / np.linalg.norm(target)
        cosines[[a, b, c]] = -np.inf
        expected.append(np.argmax(cosines) == d)
    questions = tuple(tuple(WORDS[i] for i in question) for question in asked)
    data = Questions("Google", questions, ("all",) * 60)
    found = {
        name: next(iter(TASKS[name][1]((WORDS, matrix), data, None, 0)))
        for name in ("Google", "Google raw")
    }
    assert found["Google raw"].task == "Google raw"
    np.testing.assert_array_equal(found["Google raw"].items, expected)
    assert (found["Google"].items != found["Google raw"].items).any()
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    alike = analogy((WORDS, unit), data, method=paper_cos_add)[0]
    np.testing.assert_array_equal(alike.items, found["Google"].items)


# The released tagger


def text_of(rng, sentences, *, lost=0):
    """Tags are signs of the first coordinate, sentences of 2 to 6 words; the last ones are lost."""
    known = [*WORDS, *(f"lost{i}" for i in range(lost))]
    tags = {word: "NV"[i % 2] for i, word in enumerate(known)}
    drawn = [rng.integers(len(known), size=rng.integers(2, 7)) for _ in range(sentences)]
    return tuple(tuple((known[i], tags[known[i]]) for i in s) for s in drawn), tags


def test_words_without_a_vector_get_their_own(rng):
    """Vectors that say nothing leave their tags to be learnt, one for each word."""
    train, _ = text_of(rng, 250, lost=8)
    test, _ = text_of(rng, 60, lost=8)
    signs = np.where(np.arange(30) % 2, -1.0, 1.0)[:, None]
    vectors = WORDS, (signs * np.ones((30, 6)) + 0.1 * rng.normal(size=(30, 6))).astype(np.float32)
    data = TaggedText("toy", train, test)
    score = released_tagging(vectors, data, key=KEY, units=12, epochs=8)
    lost = np.array([word.startswith("lost") for s in test for word, _ in s])
    assert score.task == "toy released"
    assert score.covered == (~lost).sum() < score.total == len(lost)
    assert score.items[~lost].mean() > 0.95
    assert score.items[lost].mean() > 0.7
    again = released_tagging(vectors, data, key=KEY, units=12, epochs=8)
    np.testing.assert_array_equal(again.items, score.items)


def test_one_sentence_a_step_in_the_order_of_the_file():
    lengths, width = [2, 3, 1], 4
    batches, places = module._batches(
        lengths, np.arange(6), np.zeros(6, int), width=width, batch=1, apart=True
    )
    assert batches.words.shape == (3, width, 1)
    np.testing.assert_array_equal(places, [0, 1, 4, 5, 6, 8])
    own = [
        [int(batches.used[i][j]) for j in batches.words[i, :n, 0]] for i, n in enumerate(lengths)
    ]
    assert own == [[0, 1], [2, 3, 4], [5]]


def test_released_steps_are_plain_descent(rng):
    """One epoch over three sentences is three steps of SGD at the rate, computed one by one."""
    train, _ = text_of(rng, 3)
    rows = np.concatenate([[WORDS.index(w) for w, _ in s] for s in train])
    tags = np.concatenate([["NV".index(t) for _, t in s] for s in train])
    table = jnp.asarray(rng.normal(size=(30, 4)).astype(np.float32))
    batches, _ = module._batches([len(s) for s in train], rows, tags, width=6, batch=1, apart=True)
    how = {"tags": 2, "units": 3, "tune": False, "released": True}
    tagger, state = module._start(KEY, table, **how)
    expected = tagger
    for i in range(3):
        words, starts, gold, used = (x[i] for x in batches)
        gradient = jax.grad(module._loss)(expected, module._rows(table, used), words, starts, gold)
        expected = jax.tree.map(lambda w, g: w - np.float32(0.1) * g, expected, gradient)
    found, *_ = module._epoch(tagger, state, table, batches, KEY, 1, 0.1, 3, released=True)
    for one, other in zip(found[1:], expected[1:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
