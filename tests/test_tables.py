"""The paper's tables at their smallest, on generated text; and the pages that quote them."""

import dataclasses

import numpy as np
import pytest

import jaxmeta
from experiments import (
    _embeddings,
    _generated,
    _record,
    _scoring,
    autoencoder_dimensions,
    corpus_to_sources,
    effect_of_alpha,
    notes,
    real_weights,
    released_weights,
    spectrum_and_k,
    table1,
    table2,
    table3,
)
from jaxmeta.evaluate import SIMILARITY, TASKS, evaluate
from jaxmeta.text import LatentModel, latent_model

pytestmark = [pytest.mark.one_leg, pytest.mark.slow]

SOURCES = dataclasses.replace(corpus_to_sources.SMOKE, size=60, tokens=200_000, rule="six")
FILES = {"rows.csv", "best.csv", "sources.csv", "sources.md", "table.md", "provenance.json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for results: its cache serves them all. Sources have six dimensions each.

    So all pairs are compiled once. There are few sentences, and the places in figures are not
    worked out: `test_experiments` draws with all that.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(jaxmeta.RULES, "six", lambda *_: 6)
        patch.setitem(_record.STYLE, "figure.constrained_layout.use", False)
        patch.setattr(_generated, "SENTENCES", 60)
        patch.setattr(table1, "OTHERS", [("MEN", "spearman"), ("RG-65", "spearman")])
        yield tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def results(folder):
    """A folder with tables 1 and 3."""
    few = {"sources": SOURCES, "draws": 20}
    tasks = ("SimLex-999", "SimVerb-3500", "CoNLL-2000", "MEN", SIMILARITY[0])
    table1.report(dataclasses.replace(table1.SMOKE, **few, tasks=tasks), folder / "table1")
    table3.report(dataclasses.replace(table3.SMOKE, **few), folder / "table3")
    return folder


def files_of_tables(results):
    names = {path.name for path in (results / "table1").iterdir()}
    assert names == FILES | {"differences.png", "comparison.md"}
    names = {path.name for path in (results / "table3").iterdir()}
    assert names >= FILES | {"comparison.md", "comparison_unit_rows.md"}
    assert len([name for name in names if name.startswith("differences_")]) == 6


def sources_are_recorded(results):
    made = _record.read_table(results / "table1" / "sources.csv")
    assert [row["source"] for row in made] == ["GloVe", "SGNS", "LSA"]
    for row in made:
        assert (row["words"], row["k"], row["corpus"]) == (60, 6, "generated")
        assert row["sigma"] > 0
        line = f"| {row['source']} | generated | 60 | {row['sigma']:.4f} | {row['rank']:.0f} | 6 |"
        assert line in (results / "table1" / "sources.md").read_text().splitlines()
    assert (results / "table3" / "sources.csv").read_text().count("\n") == 4


def rows_say_how_far_they_are_from_unweighted(results):
    rows = _record.read_table(results / "table1" / "rows.csv")
    methods = ["GloVe", "SGNS", "LSA", *table1.METHODS, *_embeddings.VARIANTS]
    assert _record.unique(rows, "method") == [*methods, "UW, alpha 0.25", "UW, alpha 0"]
    mean = _scoring.means(rows)
    for row in rows:
        reference = mean[row["setting"], "UW", row["task"], row["metric"]]
        assert row["difference"] == pytest.approx(row["value"] - reference, abs=1e-12)
        assert row["low"] <= row["value"] <= row["high"]
        assert 0 < row["covered"] <= row["total"]
        if row["method"] == "UW":
            assert (row["difference"], row["p"]) == (0, 1)


def comparisons_quote_the_paper(results):
    lines = (results / "table3" / "comparison.md").read_text().splitlines()
    assert len(lines) == 2 + len(table3.PRINTED) == 2 + 3 * 6 * 5
    assert lines[2].startswith("| GloVe + SGNS | UW | MEN | 72.45 | ")
    _, _, _, _, paper, ours, apart, *others = (part.strip() for part in lines[2].split("|"))
    assert float(apart) == pytest.approx(float(ours) - float(paper), abs=0.011)
    assert others == ["", "", ""]
    mean = _scoring.means(_record.read_table(results / "table3" / "rows.csv"))
    released = 100 * mean["GloVe + SGNS", "DW as released", "MEN", "spearman"]
    (line,) = [x for x in lines if x.startswith("| GloVe + SGNS | DW | MEN |")]
    assert f"| {released:.2f} | {released - 74.27:+.2f} |" in line
    assert len((results / "table1" / "comparison.md").read_text().splitlines()) == 2 + 8 * 3


def markdown_marks_the_best(results):
    rows, best = (
        _record.read_table(results / "table1" / f"{name}.csv") for name in ("rows", "best")
    )
    cell = ("MEN", "spearman")
    text = _scoring.markdown(rows, best, [cell], setting=table1.SETTING)
    mean = _scoring.means(rows)
    own = {m: v for (_, m, *at), v in mean.items() if tuple(at) == cell}
    first = max(own, key=own.get)
    (bold,) = [line for line in text.splitlines() if "**" in line]
    assert bold.startswith(f"| {first} |")
    assert f"{100 * own[first]:.2f}" in bold
    assert [row["best"] for row in best if row["task"] == "MEN"] == [first]


def trained_methods_are_in_both_settings_of_a_pair(results):
    mean = _scoring.means(_record.read_table(results / "table3" / "rows.csv"))
    for method in table3.TRAINED:
        raw, unit = (
            mean[f"SGNS + LSA{end}", method, "MEN", "spearman"] for end in ("", ", unit rows")
        )
        assert raw == unit
    assert (
        mean["SGNS + LSA", "DW", "MEN", "spearman"]
        != mean["SGNS + LSA, unit rows", "DW", "MEN", "spearman"]
    )


def versions_of_the_weights(results):
    config = released_weights.Config(("table1", "table3"))
    rows = released_weights.report(config, results / "released_weights", results)
    assert {row.table for row in rows} == {"table1", "table3", "table3, unit rows"}
    mean = _scoring.means(_record.read_table(results / "table3" / "rows.csv"))
    for row in rows:
        if row.table == "table3" and row.version == "as released":
            at = table3.CELLS[row.task]
            values = [mean[row.setting, m, *at] for m in ("UW", *table3.TRAINED, "SW as released")]
            assert row.first == (row.value > max(values))
            assert row.gain == pytest.approx(row.value - values[0])
    assert "| as released |" in (results / "released_weights" / "table.md").read_text()
    gains = {
        task: 100 * (mean["SGNS + LSA", "DW", *at] - mean["SGNS + LSA", "UW", *at])
        for task, at in table3.CELLS.items()
    }
    only = {at: x for at, x in table3.PRINTED.items() if at[0] == "SGNS + LSA"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table3, "PRINTED", only)
        text = released_weights.distances(
            {"table3": _record.read_table(results / "table3" / "rows.csv")}
        )
    apart = [
        gains[task] - only["SGNS + LSA", "DW", task] + only["SGNS + LSA", "UW", task]
        for task in table3.CELLS
    ]
    assert f"| as printed, own ideal | {np.mean(np.abs(apart)):.2f}; " in text
    with pytest.raises(SystemExit, match=r"run python -m experiments\.table2 first"):
        released_weights.report(released_weights.Config(), results / "none", results)


def test_tables_of_weights(results):
    """One test, as making the tables takes longer than all that is asked of them."""
    for holds in (
        files_of_tables,
        sources_are_recorded,
        rows_say_how_far_they_are_from_unweighted,
        comparisons_quote_the_paper,
        markdown_marks_the_best,
        trained_methods_are_in_both_settings_of_a_pair,
        versions_of_the_weights,
    ):
        holds(results)


def test_all_methods_in_all_tasks(folder, monkeypatch):
    kept = [name for name in table2.METHODS if name not in ("DAEME, cosine", "AAEME, cosine")]
    monkeypatch.setattr(table2, "METHODS", kept)  # like the third of the kind
    few = ("SW as released", "DW as released")
    monkeypatch.setattr(_embeddings, "VARIANTS", few)  # all of them are in the other tables
    config = dataclasses.replace(
        table2.SMOKE, sources=SOURCES, neighbours=8, epochs=1, draws=10, exponents=(0.25,)
    )
    table2.report(config, folder / "table2")
    rows = _record.read_table(folder / "table2" / "rows.csv")
    methods = _record.unique(rows, "method")
    named = {"GloVe", "SGNS", "LSA", *table2.METHODS, *few, table2.TUNED}
    assert set(methods) >= named
    assert _record.unique(rows, "setting") == [table2.SETTING, table2.UNIT_ROWS]
    unit = {row["method"] for row in rows if row["setting"] == table2.UNIT_ROWS}
    assert unit == {"GloVe", "SGNS", "LSA", "UW", *table2.PRIOR, "SW", "DW", *few}
    cells = set(_record.unique(rows, "task", "metric"))
    assert cells >= {*table2.CELLS.values(), *table2.OTHERS}
    text = (folder / "table2" / "claims.md").read_text()
    mean = _scoring.means(rows)
    above = [
        name
        for name, cell in table2.CELLS.items()
        if mean[table2.SETTING, "DW", *cell] > mean[table2.SETTING, "SW", *cell]
    ]
    assert f"| DW is above SW in all but RG, GL and MSR | {len(above)} of 12" in text
    assert (folder / "table2" / "claims_by_the_text.md").read_text() != text
    for task in ("MEN", "Google raw"):
        raw, unit = (
            mean[setting, "UW", task, dict(cells)[task]]
            for setting in (table2.SETTING, table2.UNIT_ROWS)
        )
        assert raw != unit


def test_exponents(folder):
    config = dataclasses.replace(
        effect_of_alpha.SMOKE, sources=SOURCES, alphas=(0.0, 0.5), tasks=("MTurk-771", "MEN")
    )
    rows = effect_of_alpha.report(config, folder / "alpha")
    assert len(rows) == 5 * 2 * 2
    assert {p.name for p in (folder / "alpha").iterdir()} == {
        "rows.csv", "table.md", "alpha.png", "provenance.json",
    }  # fmt: skip
    flat = {r.embedding: r for r in rows if r.alpha == 0 and r.task == "MEN"}
    # Without an exponent, nothing of the spectrum is left that weights could change.
    assert flat["UW"].pearson == pytest.approx(flat["DW"].pearson, abs=1e-9)


def test_rules_for_k(folder):
    config = dataclasses.replace(
        spectrum_and_k.SMOKE, sources=dataclasses.replace(SOURCES, rule="ideal"),
        alphas=(0.5, 1.0), tasks=("MEN",), sizes=(4,),
    )  # fmt: skip
    rows = spectrum_and_k.report(config, folder / "k")
    together = {(r.rule, r.alpha): r for r in rows if r.embedding == "UW"}
    assert together["k = 4", 0.5].k == 12
    assert together["released", 0.5].k <= together["paper", 0.5].k <= together["spiked", 0.5].k
    assert "| UW | k | alpha 0.5 | alpha 1 |" in (folder / "k" / "table.md").read_text()


def test_weights_of_real_corpora(folder):
    config = real_weights.Config({"one corpus": SOURCES}, tasks=("MEN", "STS14"), draws=10)
    rows = real_weights.report(config, folder / "weights")
    assert {row.method for row in rows} == set(real_weights.WEIGHTS)
    assert {row.setting for row in rows} == {f"one corpus, {rule}" for rule in real_weights.RULES}
    assert all(np.isfinite(row.value) for row in rows)


def test_sizes_of_autoencoders(folder):
    config = dataclasses.replace(
        autoencoder_dimensions.SMOKE, sources=SOURCES, sizes=(3,), seeds=(0, 1), epochs=1,
        tasks=("MTurk-771", "MEN"),
    )  # fmt: skip
    rows = autoencoder_dimensions.report(config, folder / "sizes")
    by_method = {row.method: row.dimensions for row in rows}
    assert by_method["AAEME"] == 3
    assert by_method["DAEME"] == by_method["CAEME"] > 3
    assert len(rows) == 3 * 2 * 2


# Tasks for generated text


@pytest.fixture(scope="module")
def model():
    return latent_model(80, rank=4, strength=0.8, seed=0)


@pytest.mark.parametrize("name", TASKS)
def test_generated_tasks_are_about_the_model(name, model: LatentModel, monkeypatch):
    """The truth itself does well, and numbers that have nothing to do with it do not."""
    monkeypatch.setattr(_generated, "SENTENCES", 240)  # tests of tables make do with fewer
    vectors = _generated.truth(model)
    noise = np.random.default_rng(0).normal(size=vectors.shape)
    data = _generated.task(name, model)
    right, wrong = (
        next(iter(TASKS[name][1]((model.words, x), data, None, 0))).value for x in (vectors, noise)
    )
    assert right > wrong + 0.1
    assert right > 0.55


# Pages


def test_pages_quote_the_results(tmp_path, capsys):
    table = tmp_path / "results" / "table1" / "table.md"
    table.parent.mkdir(parents=True)
    table.write_text("| 1 |\n")
    page = tmp_path / "paper_notes.md"
    page.write_text("Before\n<!-- results/table1/table.md -->\nold\n<!-- end -->\nAfter\n")
    with pytest.raises(SystemExit, match="not up to date"):
        notes.main(["--check"], tmp_path)
    assert "old" in page.read_text()
    notes.main([], tmp_path)
    assert page.read_text() == (
        "Before\n<!-- results/table1/table.md -->\n\n| 1 |\n\n<!-- end -->\nAfter\n"
    )
    notes.main(["--check"], tmp_path)
    assert "up to date" in capsys.readouterr().out
    table.unlink()
    with pytest.raises(SystemExit, match=r"run python -m experiments\.table1 first"):
        notes.main([], tmp_path)


def test_the_pages_of_this_project_are_up_to_date():
    notes.main(["--check"])


def test_a_missing_data_set_ends_the_program(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXMETA_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"EN-MEN-TR-3k\.txt"):
        _scoring.tasks(["MEN"], None)
    with pytest.raises(FileNotFoundError, match=r"EN-MEN-TR-3k\.txt"):
        evaluate({"a": [1.0], "b": [2.0]}, ["MEN"])
