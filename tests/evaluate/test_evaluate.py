"""All tasks by name: the data set is read, and scored by the function that it belongs to."""

import os

import numpy as np
import pytest

from jaxmeta.evaluate import DATASETS, SIMILARITY, TASKS, MissingData, evaluate, load, similarity

pytestmark = pytest.mark.one_leg  # word similarity has no arrays of JAX
needs_data = pytest.mark.skipif(
    "JAXMETA_DATA" not in os.environ, reason="JAXMETA_DATA names no folder with data sets"
)


def test_every_task_has_a_data_set():
    assert {name for name, _ in TASKS.values()} == set(DATASETS)
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
        with pytest.raises(ValueError, match=r"tasks: got .*, expected some of RG-65"):
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
