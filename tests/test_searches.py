"""Searches on the development set and ways of training a tagger, at their smallest."""

import dataclasses

import numpy as np
import pytest

import jaxmeta
from experiments import _generated, _record, corpus_to_sources, tagging, tuning

pytestmark = [pytest.mark.one_leg, pytest.mark.slow]

SOURCES = dataclasses.replace(corpus_to_sources.SMOKE, size=60, tokens=200_000, rule="six")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for results; sources have six dimensions each, and there are few sentences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(jaxmeta.RULES, "six", lambda *_: 6)
        patch.setattr(_generated, "SENTENCES", 60)
        yield tmp_path_factory.mktemp("results")


def test_searches(folder, capsys):
    config = dataclasses.replace(
        tuning.SMOKE, sources=SOURCES, windows=(5,), neighbours=(8,), lle=(3, 6), aaeme=(4,),
        svd=(4, 18), one_to_n=(4,), rates=(0.1,), epochs=1,
    )  # fmt: skip
    rows = tuning.report(config, folder / "tuning")
    found = {(row.search, row.embedding, row.value): row for row in rows}
    assert len(found) == len(rows)
    assert {search for search, *_ in found} == set(tuning.PAPER)
    for row in rows:
        assert row.low <= row.pearson <= row.high
        assert row.paper == (row.value == tuning.PAPER[row.search])
    # The same embeddings by other names: all dimensions of the SVD, and the settings of the paper.
    whole = found["window", "UW", 5]
    assert found["SVD: dimensions", "SVD", 18].pearson == pytest.approx(whole.pearson, abs=1e-4)
    for search, value in (("beta", 3), ("alpha", 0.5)):
        assert found[search, "UW", value].pearson == pytest.approx(whole.pearson, abs=1e-6)
    assert found["beta", "SGNS", 3].pearson != found["beta", "SGNS", 1].pearson
    both = found["LLE: dimensions", "LLE, 8 neighbours", 3], found["LLE: neighbours",
        "LLE, 3 dimensions", 8]  # fmt: skip
    assert both[0].pearson == both[1].pearson
    assert "| beta | SGNS | 1, 3 |" in (folder / "tuning" / "table.md").read_text()
    assert "lle: will take" in capsys.readouterr().err
    again = tuning.run(config, folder / "cache", only=("lle", "aaeme"))
    kept = [row for row in rows if row.search.startswith(("LLE", "AAEME"))]
    assert [row.pearson for row in again] == [row.pearson for row in kept]


def test_a_table_says_whether_the_paper_is_within_the_interval():
    def row(value, pearson, *, search="window", paper=5):
        low, high = pearson - 0.1, pearson + 0.1
        return {
            "search": search, "embedding": "UW", "value": value, "paper": str(value == paper),
            "pearson": pearson, "low": low, "high": high,
        }  # fmt: skip

    rows = [row(2, 0.5), row(5, 0.45)]
    rows += [row(5, 0.5, search="beta", paper=3), row(3, 0.2, search="beta", paper=3)]
    rows += [row(0.5, 0.3, search="alpha", paper=0.5)]
    rows += [row(100, 0.3, search="SVD: dimensions", paper=200)]
    lines = [line.split(" | ")[2:] for line in tuning.table(rows).splitlines()[2:]]
    assert lines == [
        ["2, 5", "2", "50.00 (40.00 to 60.00)", "5", "45.00", "yes |"],
        ["5, 3", "5", "50.00 (40.00 to 60.00)", "3", "20.00", "no |"],
        ["0.5", "0.5", "30.00 (20.00 to 40.00)", "0.5", "30.00", "it is the best |"],
        ["100", "100", "30.00 (20.00 to 40.00)", "not tried", "", " |"],
    ]


def test_estimates_grow_as_the_work_does():
    config = dataclasses.replace(tuning.FULL, neighbours=(600,))
    sources = tuple(type("S", (), {"k": k, "words": range(1000)})() for k in (30, 20))
    one = tuning.flops(tuning.Given(config, None, sources))
    more = dataclasses.replace(config, neighbours=(600, 600), epochs=2 * config.epochs)
    other = tuning.flops(tuning.Given(more, None, sources))
    assert other["lle"] == pytest.approx(2 * one["lle"])
    assert other["aaeme"] == pytest.approx(2 * one["aaeme"])
    # 600 neighbours, rows of 50: 600 (50^2 + 30^2 + 20^2) + 50^3 / 3 for a word, and n^3.
    assert one["lle"] == pytest.approx(1000 * (600 * 3800 + 50**3 / 3) + 1e10)


def test_two_ways_of_training_a_tagger(folder):
    config = tagging.Config(SOURCES, methods=("UW", "DW"), draws=10)
    rows = tagging.report(config, folder / "tagging")
    tasks = ["CoNLL-2000", "CoNLL-2000 released"]
    assert _record.unique([vars(row) for row in rows], "task") == tasks
    assert [row.method for row in rows[::2]] == ["GloVe", "SGNS", "LSA", "UW", "DW"]
    values = {(row.method, row.task): row.value for row in rows}
    for row in rows:
        assert row.difference == pytest.approx(row.value - values["UW", row.task], abs=1e-12)
    assert all(values[m, tasks[0]] != values[m, tasks[1]] for m in ("GloVe", "UW"))
    text = (folder / "tagging" / "table.md").read_text()
    assert text.splitlines()[-1].endswith("| 88.63 | +0.71 |")
    assert np.isfinite(list(values.values())).all()
