"""The picture of two classes of words, at its smallest, and the numbers beside it."""

import csv
import dataclasses
import json

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="t-SNE is scikit-learn's: pip install jaxmeta[eval]")

import jaxmeta
from experiments import corpus_to_sources, tsne
from jaxmeta.evaluate import LabelledSentences, RatedWords, proportion_interval

threadpoolctl = pytest.importorskip("threadpoolctl", reason="scikit-learn comes with it")

pytestmark = [pytest.mark.one_leg, pytest.mark.slow]

# Smaller than --smoke.
SOURCES = dataclasses.replace(corpus_to_sources.SMOKE, size=60, tokens=40_000)
CONFIG = tsne.Config(sources=SOURCES, planted=20, perplexity=10.0)
NAMES = ["GloVe", "SGNS", "LSA", "UW", "DW"]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Threads of t-SNE that wait for one another would take minutes on a busy machine."""
    with threadpoolctl.threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "tsne"
    return out, tsne.report(CONFIG, out)


def test_files_are_written(drawn):
    out, rows = drawn
    names = {path.name for path in out.iterdir()}
    assert names == {"rows.csv", "points.csv", "provenance.json", "tsne.png"}
    for name, length in (("rows.csv", len(rows)), ("points.csv", 5 * 40)):
        with (out / name).open(newline="") as file:
            assert len(list(csv.reader(file))) == 1 + length
    record = json.loads((out / "provenance.json").read_text())
    assert record["config"]["seed"] == CONFIG.seed
    assert record["config"]["sources"]["size"] == 60
    assert (out / "tsne.png").stat().st_size > 10_000


def test_planted_classes_are_found(drawn):
    _, rows = drawn
    assert [(r.embedding, r.neighbours) for r in rows] == [(n, m) for n in NAMES for m in (1, 10)]
    widths = {r.embedding: r.k for r in rows}
    assert widths["UW"] == widths["DW"] == sum(widths[name] for name in NAMES[:3])
    for r in rows:
        assert r.words == 40
        assert r.accuracy == r.right / r.words
        assert (r.low, r.high) == proportion_interval(r.right, r.words)
    assert all(r.low > 0.5 for r in rows if r.embedding in ("SGNS", "UW", "DW"))


def test_the_same_seed_gives_the_same_picture(drawn):
    out, rows = drawn
    again, points = tsne.run(CONFIG, out.parent / "cache")
    assert again == rows
    written = tsne._record.read_table(out / "points.csv")
    assert [vars(point) for point in points] == written


def test_neighbours_against_a_loop(rng):
    x, positive = rng.normal(size=(25, 3)), rng.random(25) < 0.4
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for count in (1, 2, 5, 10):
        right = []
        for i in range(25):
            others = sorted((j for j in range(25) if j != i), key=lambda j: -x[i] @ x[j])[:count]
            votes = [positive[j] for j in others]
            ayes = 2 * sum(votes) - count
            chosen = votes[0] if ayes == 0 else ayes > 0
            right.append(chosen == positive[i])
        np.testing.assert_array_equal(tsne.nearest(x, positive, count), right)


def test_the_latent_coordinate():
    """Of rank 1 it is that of the vectors, which are the first numbers drawn, less their mean."""
    model = jaxmeta.text.latent_model(50, rank=1, strength=0.5, seed=3)
    vectors = np.random.default_rng(3).normal(size=50)
    found, expected = tsne.latent_coordinate(model), vectors - vectors.mean()
    assert abs(found @ expected) == pytest.approx(np.linalg.norm(expected))


def test_words_are_drawn_from_what_has_one_class():
    sentences = (("good",), ("ill",), ("so", "bad"), ("so",), ("so",), ("fine",))
    data = LabelledSentences("MPQA", sentences, np.array([1, 0, 0, 1, 0, 1]))
    found = tsne.of_phrases(data)
    assert found == {"good": "positive", "ill": "negative", "fine": "positive"}
    ratings = RatedWords("SentiWords", ("a", "b", "a", "c"), np.array([0.5, -0.1, -0.2, 0.0]))
    assert tsne.of_ratings(ratings) == {"a": "negative", "b": "negative"}
    many = {f"w{i}": ("positive", "negative")[i % 2] for i in range(40)}
    config = dataclasses.replace(CONFIG, words="MPQA", drawn=5)
    known = {f"w{i}" for i in range(30)}
    drawn = tsne.draw(many, known, config)
    assert drawn.keys() <= known
    assert list(drawn.values()) == ["positive"] * 5 + ["negative"] * 5
    assert all(many[word] == own for word, own in drawn.items())
    assert tsne.draw(many, known, config) == drawn
    assert tsne.draw(many, known, dataclasses.replace(config, seed=1)) != drawn
    assert len(tsne.draw(many, known, dataclasses.replace(config, drawn=99))) == 30


def test_a_missing_list_ends_the_program(monkeypatch, tmp_path):
    for path in ("corpora/wiki.zip",):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).touch()
    monkeypatch.setenv("JAXMETA_DATA", str(tmp_path))
    config = dataclasses.replace(tsne.FULL, words="SentiWords")
    with pytest.raises(SystemExit, match=r"ask for SentiWords 1\.1 .*in lexicon"):
        tsne.material(config, tmp_path)


def test_the_list():
    positive, negative = tsne.POSITIVE.split(), tsne.NEGATIVE.split()
    assert len(positive) == len(negative) == 60
    assert len({*positive, *negative}) == 120
