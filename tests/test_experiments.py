"""Experiments at their smallest: files are written, and rows are what they should be."""

import csv
import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmeta
from experiments import (
    _draws,
    _record,
    _trained,
    corpus_to_sources,
    downstream,
    equalised_sources,
    pip_dimension,
    pretrained,
    sentences,
    unseen_pairs,
    weights_vs_oracle,
)

pytestmark = [
    pytest.mark.one_leg,
    pytest.mark.slow,
    # Ideals of so few words may have no eigenvalue near 0, which looks like a cut spectrum.
    pytest.mark.filterwarnings("ignore:eigenvalues. got"),
]

# As small as makes sense, and smaller than --smoke: what counts here is that all of it runs.
WEIGHTS = dataclasses.replace(
    weights_vs_oracle.SMOKE, n=60, shared_n=60, sigma=0.6, other_sigmas=(0.3,), candidates=24
)
SOURCES = dataclasses.replace(corpus_to_sources.SMOKE, size=60, tokens=40_000)
DIMENSION = dataclasses.replace(pip_dimension.SMOKE, n=60, sigma=0.6, candidates=24)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "weights_vs_oracle"
    return out, weights_vs_oracle.report(WEIGHTS, out)


@pytest.fixture(scope="module")
def dimension(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "pip_dimension"
    return out, pip_dimension.report(DIMENSION, out)


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("weights", ["rows.csv", "debiased.csv", "ratio_to_oracle.png", "provenance.json"]),
        ("dimension", ["rows.csv", "curves.csv", "pip_dimension.png", "provenance.json"]),
    ],
)
def test_files_are_written(name, files, request):
    out, rows = request.getfixturevalue(name)
    assert {path.name for path in out.iterdir()} == set(files)
    with (out / "rows.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) == 1 + len(rows)
    record = json.loads((out / "provenance.json").read_text())
    assert {"commit", "versions", "device", "dtype", "config", "started", "seconds"} <= set(record)
    assert record["dtype"] == "float64"
    assert record["config"]["first_seed"] == 1000
    (picture,) = out.glob("*.png")
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize("smoke", [True, False])
def test_smoke_runs_say_that_their_data_is_generated(tmp_path, capsys, monkeypatch, smoke):
    @dataclasses.dataclass
    class Config:
        seed: int = 0

    monkeypatch.setattr("sys.argv", ["table1.py", *["--smoke"] * smoke])
    _record.publish(tmp_path, Config(), {"rows": [Config()]}, started=0.0)
    record = json.loads((tmp_path / "provenance.json").read_text())
    assert ("generated data" in record.get("data", "")) == smoke
    assert ("A smoke run, of generated data" in capsys.readouterr().out) == smoke


def test_nothing_beats_the_oracle(weights):
    _, rows = weights
    for row in rows:
        assert np.isfinite(row.loss)
        assert row.worst_ratio >= row.mean_ratio * (1 - 1e-12)
        assert row.mean_ratio >= 1 - 1e-9, row
        if row.method == "exact":
            assert row.worst_ratio == pytest.approx(1, abs=1e-9)


def test_every_method_is_there(weights):
    _, rows = weights
    one = {row.method for row in rows if row.sources == 1}
    several = {row.method for row in rows if row.sources > 1}
    paper = {"UW", "DW as released", "exact"}
    assert paper | {"SW, own USVT", "DW, own USVT", "spiked", "RIE", "ideal strengths"} <= one
    assert paper | {"SW, true blocks", "DW, true blocks", "aligned"} <= several
    assert {row.alpha for row in rows if row.method == "RIE"} == {0.5}
    assert {row.seeds for row in rows} == {WEIGHTS.seeds}


def test_true_losses_are_those_of_the_library():
    """The loss by strengths, without vectors, is that of embeddings."""
    spectrum, sigma = _draws.Spectrum(0.5), 0.5
    rng = np.random.default_rng(3)
    ideal = spectrum.values(40, rng)
    eigenvalues, vectors = _draws.noisy(ideal, sigma, rng)
    draw = _draws.Draw(ideal, eigenvalues, _draws.strengths(vectors, ideal, [0.5]))
    with jax.enable_x64(True):
        clean = jnp.diag(jnp.asarray(ideal**0.5))
        noisy = jnp.asarray(vectors * np.abs(eigenvalues) ** 0.5)
        expected = [float(jaxmeta.pip_loss(clean, noisy[:, :k])) for k in (1, 5, 40)]
    curve = pip_dimension.true_curve(draw, 0.5, 0)
    np.testing.assert_allclose(curve[[0, 4, 39]], expected, rtol=1e-9)


def test_draws_come_back_from_disk(tmp_path):
    config = _draws.Config(n=30, sigma=0.5, alphas=(0.5,))
    spectrum = _draws.Spectrum(0.5, indefinite=True)
    first = config.draw(tmp_path, spectrum, 1)
    (path,) = tmp_path.iterdir()
    changed = path.stat().st_mtime_ns
    second = config.draw(tmp_path, spectrum, 1)
    assert path.stat().st_mtime_ns == changed
    for name, array in vars(first).items():
        np.testing.assert_array_equal(array, getattr(second, name))
    config.draw(tmp_path, spectrum, 2)
    assert len(list(tmp_path.iterdir())) == 2


def test_dimensions_are_in_range(dimension):
    _, rows = dimension
    for row in rows:
        assert 1 <= row.k <= DIMENSION.n
        assert 0 <= row.within <= 1
        assert row.worst_ratio >= row.mean_ratio * (1 - 1e-12)
        assert row.mean_ratio >= 1 - 1e-12
    released = {(r.spectrum, r.signs): r.k for r in rows if r.rule == "released"}
    simulated = {(r.spectrum, r.signs): r.k for r in rows if r.rule == "paper, simulated"}
    assert released.keys() == simulated.keys()
    assert all(released[at] <= simulated[at] for at in released)


def test_every_curve_has_its_marks(dimension):
    out, _ = dimension
    points = _record.read_table(out / "curves.csv")
    for spectrum in DIMENSION.spectra:
        own = [p for p in points if p["spectrum"] == spectrum.name]
        marks = [mark for p in own for mark in str(p["marks"]).split(";")]
        assert set(pip_dimension.MARKS) <= set(marks)
        assert all(p["lowest"] <= p["loss"] <= p["highest"] for p in own)


def test_a_verdict_is_about_the_worst_case():
    assert _record.verdict(1.0, 1.04, 1.05) == "met"
    assert "MISSED" in _record.verdict(1.0, 1.06, 1.05)
    assert _record.verdict(1.06, 1.07, 1.05) == "MISSED"


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "corpus_to_sources"
    return out, corpus_to_sources.report(SOURCES, out)


def test_sources_of_generated_text(sources):
    out, rows = sources
    names = {path.name for path in out.iterdir()}
    assert names == {"rows.csv", "curves.csv", "provenance.json", "spectra.png", "pip_loss.png"}
    assert [row.source for row in rows] == list(corpus_to_sources.SIGNALS)
    for row in rows:
        assert row.words == SOURCES.size
        assert row.k == row.paper == row.released + 1
        assert 1 <= row.k <= row.rank <= row.words
        assert row.edge == pytest.approx(2 * row.sigma * row.words**0.5)
        assert row.residual < 1e-3
        assert 0 < row.least_weight <= row.source_weight * (1 + 1e-6) <= 1 + 1e-6
        assert row.minima >= 1


def test_curves_of_sources_have_their_minima_at_k(sources):
    out, rows = sources
    points = _record.read_table(out / "curves.csv")
    for row in rows:
        own = [p for p in points if p["source"] == row.source]
        assert [p["k"] for p in own] == list(range(1, row.rank + 1))
        assert 1 + np.argmin([p["paper"] for p in own]) == row.paper
        assert 1 + np.argmin([p["predicted"] for p in own]) == min(row.ideal, row.rank)


def test_generated_files(tmp_path, capsys):
    config = dataclasses.replace(pretrained.SMOKE, files=("wide", "long"), words=100, draws=20)
    out = tmp_path / "pretrained"
    rows = pretrained.report(config, out)
    names = {path.name for path in out.iterdir()}
    assert names == {
        "rows.csv", "table.md", "differences.png", "diagnosis.png", "diagnosis.txt",
        "provenance.json",
    }  # fmt: skip
    assert [row.method for row in rows] == ["wide", "long", *pretrained.VARIANTS]
    by_name = {row.method: row for row in rows}
    best = max(by_name["wide"].mean, by_name["long"].mean)
    for row in rows:
        assert row.difference == pytest.approx(row.mean - best, abs=1e-12)
        assert row.low <= row.difference <= row.high
        assert row.worst_coverage == 1
    # The long file drowns the better one; standardised, both count.
    assert by_name["as they are"].mean < by_name["wide"].mean < by_name["default"].mean
    assert "long dominates" in capsys.readouterr().out


def test_generated_sentences(tmp_path, capsys, monkeypatch):
    for name in ("unit rows", "default, k by .05"):
        monkeypatch.delitem(sentences.METHODS, name)
    files = dataclasses.replace(pretrained.SMOKE, files=("long", "narrow"), words=150)
    config = dataclasses.replace(sentences.SMOKE, files=files, pairs=80, draws=20)
    out = tmp_path / "sentences"
    rows = sentences.report(config, out)
    names = {path.name for path in out.iterdir()}
    assert names == {"rows.csv", "table.md", "differences.png", "provenance.json"}
    ways = {(row.files, row.method, row.fitted) for row in rows}
    both, ones = "long + narrow", ("long", "narrow")
    assert ways == {(one, one, "") for one in ones} | {(both, "concatenation", "")} | {
        (files, "default", fitted) for files in (*ones, both) for fitted in ("STS-B", "SICK")
    }
    assert len(rows) == len(ways) * 2 * len(sentences.TASKS)
    found = {(row.files, row.method, row.fitted, row.task, row.metric): row for row in rows}
    for row in rows:
        singles = [
            found[one, one, "", row.task, row.metric].value for one in row.files.split(" + ")
        ]
        assert row.difference == pytest.approx(row.value - max(singles), abs=1e-12)
        assert np.isfinite(row.alike) == ((row.files, row.method) == (both, "default"))
        if np.isfinite(row.alike):
            alone = [found[one, "default", row.fitted, row.task, row.metric].value for one in ones]
            assert row.alike == pytest.approx(row.value - max(alone), abs=1e-12)
        assert row.low <= row.value <= row.high
        assert row.dimensions <= 30
    assert both in capsys.readouterr().out


def test_generated_pairs(tmp_path, capsys):
    config = dataclasses.replace(unseen_pairs.SMOKE, words=150, triples=(), draws=20)
    out = tmp_path / "unseen_pairs"
    rows = unseen_pairs.report(config, out)
    texts = {f"{name}.md" for name in ("table", "summary", "spelling", "apart", "prediction")}
    files = {"rows.csv", "signs.csv", "differences.png", "provenance.json"}
    assert {path.name for path in out.iterdir()} == texts | files
    pairs = {f"first + {name}" for name in ("second", "third", "noise", "shuffled", "copy")}
    assert {row.files for row in rows} == pairs | {"second + third"}
    found = {(row.files, row.method): row for row in rows}
    for row in rows:
        best = max(found[row.files, name].mean for name in row.files.split(" + "))
        assert row.over_best == pytest.approx(row.mean - best, abs=1e-12)
        assert row.low <= row.over_best <= row.high
    # Word forms leave files out that have nothing to give, and the default does not.
    for name in ("noise", "shuffled"):
        files = f"first + {name}"
        assert found[files, "default"].mean < found[files, "word forms"].mean
    apart = {sign["file"]: sign["separation"] for sign in _record.read_table(out / "signs.csv")}
    assert abs(apart["shuffled"]) < 0.5 < 1 < apart["third"] < apart["first"] == apart["copy"]
    assert "first + second" in capsys.readouterr().out


def test_scores_of_equalised_sources(tmp_path, capsys, monkeypatch):
    few = {"word similarity": ("RG-65", "MEN"), "STS13 to STS16": ("STS13",), "STS-B": ("STS-B",)}
    monkeypatch.setattr(downstream, "GROUPS", few)
    config = downstream.Config(SOURCES, trained=(), width=3, draws=20)
    out = tmp_path / "downstream"
    rows = downstream.report(config, out)
    names = {path.name for path in out.iterdir()}
    tables = {"rows.csv", "differences.csv", "times.csv", "table.md"}
    assert names == tables | {"differences.md", "differences.png", "provenance.json"}
    assert {row.setting for row in rows} == {
        f"{signal}, alpha {alpha}" for signal in ("PPMI", "log counts") for alpha in (0.5, 0.25)
    }
    of = {(row.setting, row.embedding, row.task): row for row in rows}
    for row in rows:
        assert row.low <= row.value <= row.high
        for one, other in (("denoised", "raw, k of the ideal"), ("raw, 3", "denoised, 3")):
            sizes = {of[row.setting, name, row.task].dimensions for name in (one, other)}
            assert len(sizes) == 1
    for d in _record.read_table(out / "differences.csv"):
        one, other = (
            np.mean([of[d["setting"], name, task].value for task in few[d["group"]]])
            for name in (d["embedding"], d["other"])
        )
        assert d["difference"] == pytest.approx(one - other, abs=1e-12)
        assert d["low"] <= d["difference"] <= d["high"]
    assert "three sources" in capsys.readouterr().out


def test_gensim_trains_once(tmp_path):
    pytest.importorskip("gensim")
    path = tmp_path / "text"
    path.write_text("a b c d " * 2000)
    corpus, store = jaxmeta.Corpus(path), jaxmeta.files.Cache(tmp_path)
    settings = {"vector_size": 4, "min_count": 1, "bucket": 10, "subwords": True, "restrict": True}
    made, took = _trained.train(corpus, ("b", "a"), store, **settings)
    assert made.shape == (2, 4)
    assert np.isfinite(made).all()
    assert took.seconds > 0
    again, then = _trained.train(corpus, ("b", "a"), store, **settings)
    np.testing.assert_array_equal(again, made)
    assert then == took
    kept = list(_trained.sentences(corpus, tokens=1500, words={"a", "b"}))
    assert [len(one) for one in kept] == [1000, 1000]
    assert {word for one in kept for word in one} == {"a", "b"}


def test_without_gensim_it_is_said(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert not _trained.installed()
    assert "pip install 'jaxmeta[gensim]'" in capsys.readouterr().err


def test_what_the_rule_equalised_does(tmp_path):
    out = tmp_path / "equalised_sources"
    noises, ks, weights, points, bulk = equalised_sources.report(
        equalised_sources.Config(SOURCES, rank=30), out
    )
    tables = {f"{name}.csv" for name in ("noise", "k", "weights", "curves", "bulk")}
    others = {"summary.md", "bulk.png", "cross_validated.png", "provenance.json"}
    assert {path.name for path in out.iterdir()} == tables | others
    for noise in noises:
        assert noise.law_equalised < noise.law  # words of this text are as unlike as any
        own = [b for b in bulk if b.signal == noise.signal]
        assert sum(b.count for b in own) == pytest.approx(2 * SOURCES.size)
        curve = [p for p in points if p.signal == noise.signal]
        assert [p.k for p in curve] == list(range(1, 31))
        assert noise.best <= min(p.crossed for p in curve) * (1 + 1e-6)
        by_rule = {(k.rule, k.sigma): k for k in ks if k.signal == noise.signal}
        assert len(by_rule) == 2 * len(jaxmeta.RULES) + 1
        chosen = by_rule["equalised", "nested"]
        for k in by_rule.values():
            assert not k.predicted < chosen.predicted * (1 - 1e-6)
            assert not k.crossed < 1 - 1e-6
            if k.first == k.second <= 30:
                assert k.crossed == pytest.approx(curve[k.first - 1].crossed / noise.best, rel=1e-5)
        ranges = {(w.weighting, w.sigma): w for w in weights if w.signal == noise.signal}
        none, estimated = ranges["UW", ""], ranges["estimated ideal", ""]
        assert none.least == none.most == 1
        assert none.crossed == pytest.approx(curve[-1].crossed / noise.best, rel=1e-5)
        for w in ranges.values():
            assert not w.predicted < estimated.predicted * (1 - 1e-6)


def test_without_data_an_experiment_says_what_is_missing(monkeypatch, tmp_path):
    for folder in (None, str(tmp_path)):
        monkeypatch.delenv("JAXMETA_DATA", raising=False)
        if folder:
            monkeypatch.setenv("JAXMETA_DATA", folder)
        with pytest.raises(SystemExit, match=r"expected a folder with corpora/wiki\.zip"):
            _record.data("corpora/wiki.zip")
    (tmp_path / "corpora").mkdir()
    (tmp_path / "corpora" / "wiki.zip").touch()
    assert _record.data("corpora/wiki.zip") == [tmp_path / "corpora" / "wiki.zip"]
