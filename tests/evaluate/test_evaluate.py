"""Tasks by name: a data set is read and scored by its function; and scores of real vectors."""

import os
import pathlib

import jax
import numpy as np
import pytest

from jaxmeta.evaluate import (
    DATASETS,
    SIMILARITY,
    TASKS,
    MissingData,
    entailment,
    evaluate,
    load,
    relatedness,
    sentiment,
    similarity,
    sts,
    tagging,
)
from jaxmeta.files import Vectors, read_vectors

pytestmark = [
    pytest.mark.one_leg,
    pytest.mark.slow,
]  # in double precision on the host, or of float32
needs_data = pytest.mark.skipif(
    "JAXMETA_DATA" not in os.environ, reason="JAXMETA_DATA names no folder with data sets"
)


def test_every_task_has_a_data_set():
    assert {name for name, _ in TASKS.values()} == set(DATASETS) - {"SentiWords"}
    assert set(SIMILARITY) <= set(TASKS)


@pytest.fixture
def folder(tmp_path):
    """A small set of word pairs where the real one would be."""
    path = tmp_path / "similarity" / "EN-RG-65.txt"
    path.parent.mkdir()
    path.write_text("a\tb\t1.0\na\tc\t2.0\nb\tc\t3.0\na\tmissing\t4.0\n")
    return tmp_path


@pytest.mark.filterwarnings("ignore::jaxmeta.evaluate.OtherEdition")
def test_scores_are_those_of_the_task(folder, rng):
    vectors = (("a", "b", "c"), rng.normal(size=(3, 4)))
    said = []
    (score,) = evaluate(vectors, ["RG-65"], folder=folder, progress=lambda *x: said.append(x))
    expected = similarity(vectors, load("RG-65", folder))
    assert (score.task, score.value, score.covered, score.total) == ("RG-65", expected.value, 3, 4)
    assert said == [("evaluate", 1.0)]


def test_errors(folder, rng):
    vectors = (("a", "b"), rng.normal(size=(2, 4)))
    for tasks in ("MEN", [], ["WordSim"]):
        with pytest.raises(ValueError, match=r"tasks: got .*, expected some of 'RG-65'"):
            evaluate(vectors, tasks, folder=folder)
    with pytest.raises(MissingData, match=r"EN-MEN"):
        evaluate(vectors, ["MEN"], folder=folder)
    broken = (("a", "b"), np.array([[1.0, 2.0], [np.nan, 0.0]]))
    with pytest.raises(ValueError, match=r"not finite in row 1 \('b'\)"):
        evaluate(broken, ["RG-65"], folder=folder)


@needs_data
def test_seven_sets_of_real_words(rng):
    words = sorted({w for name in SIMILARITY for w in (*load(name).first, *load(name).second)})
    scores = evaluate((words, rng.normal(size=(len(words), 50))))
    assert [score.task for score in scores] == list(SIMILARITY)
    for score in scores:
        assert score.covered == score.total
        assert abs(score.value) < 5 / np.sqrt(score.total)


# Real data: word2vec of 26,000 words, float32, with what SentEval reports for all of them in mind


@pytest.fixture(scope="module")
def word2vec():
    folder = pathlib.Path(os.environ["JAXMETA_DATA"])
    return read_vectors(folder / "vectors" / "googlenews-26k-300d.bin")


@needs_data
def test_sentiment_of_reviews(word2vec):
    score = sentiment(word2vec, load("CR"), seed=0)
    assert score.total == 3775
    assert score.covered > 3700
    assert 0.77 < score.value < 0.82


@needs_data
def test_entailment_and_relatedness_of_sick(word2vec):
    data, word2vec = load("SICK"), Vectors(word2vec.words, word2vec.matrix[:, :100])
    score = entailment(word2vec, data)
    assert (score.task, score.total) == ("SICK-E", 4927)
    assert 0.73 < score.value < 0.79
    pearson, spearman = relatedness(word2vec, data)
    assert pearson.task == "SICK-R"
    assert 0.70 < pearson.value < 0.77
    assert 0.63 < spearman.value < 0.71


@needs_data
def test_similarity_of_sentences(word2vec):
    pearson, spearman = sts(word2vec, load("STS-B"))
    assert (pearson.task, pearson.total) == ("STS-B", 1379)
    assert 0.4 < spearman.value < 0.6
    found = sts(word2vec, load("STS14"))
    assert len(found) == 14
    assert [found[0].total, *(score.total for score in found[2::2])].count(750) == 4
    assert 0.4 < found[0].value < 0.7


@needs_data
def test_tagging_of_english():
    """A few hundred sentences, float32: far above the share of the most frequent tag."""
    whole = load("CoNLL-2000")
    text = whole._replace(train=whole.train[:800], test=whole.test[:200])
    seen = {word for part in text[1:] for s in part for word, _ in s}
    seen |= {word.lower() for word in seen}
    file = pathlib.Path(os.environ["JAXMETA_DATA"]) / "vectors" / "glove-100d-56k.txt.gz"
    vectors = read_vectors(file, format="glove", limit=20_000, vocabulary=seen)
    score = tagging(vectors, text, key=jax.random.key(0), epochs=4, batch=4)
    tags = [tag for s in text.test for _, tag in s]
    assert score.total == len(tags)
    assert 0.7 < score.covered / score.total < 1
    commonest = max(tags.count(tag) for tag in set(tags)) / len(tags)
    assert score.value > 0.7 > 3 * commonest
