"""What the paper says about its second table, on scores that are made up."""

import math

import pytest

from experiments import _record, _scoring, table2
from jaxmeta.evaluate import correlation_interval, proportion_interval

pytestmark = pytest.mark.one_leg

N = 1000
METHODS = (*table2.COMPARED, "SW", "DW", "DW as released", "UW, alpha 0.25")


def row(method, task, value, setting=table2.SETTING, cells=table2.CELLS, n=N):
    name, metric = cells[task]
    low, high = (
        proportion_interval(round(n * value), n)
        if metric == "accuracy"
        else correlation_interval(value, n)
    )
    return {
        "setting": setting, "method": method, "task": name, "metric": metric, "value": value,
        "low": low, "high": high, "covered": float(n), "total": float(n),
    }  # fmt: skip


def table(cells=table2.CELLS, **higher):
    """All methods at .5 in all tasks, but for what is said: `DW_RW=.6`."""
    values = {tuple(name.split("_")): value for name, value in higher.items()}
    return [
        row(method, task, values.get((method, task), 0.5), cells=cells)
        for method in METHODS
        for task in cells
    ]


def lines(text):
    """Statement to what is found, of a Markdown table."""
    return dict(map(str.strip, line.strip("|").split(" | ")) for line in text.splitlines()[2:])


def test_second_best_is_by_the_papers_test():
    """A difference of .05 at .5: z = .067 sqrt(997 / 2) = 1.48, and one of .1 is 3.2."""
    said = lines(table2.claims(table(DW_RW=0.6, DW_CR=0.52, DW_MEN=0.61, SW_GL=0.55)))
    statement = "DW is surely above the second best in RW and CR"
    assert said[statement] == "1 of 2 (RW); besides MEN"
    # The interval of 550 of 1000 right begins at .5186, above .5; that of 520 does not.
    assert said["SW is surely above the second best in GL and MSR"] == "1 of 2 (GL)"
    assert said["DW is above SW in all but RG, GL and MSR"] == "3 of 12 (RW, MEN, CR)"
    assert said["SW or DW is the best in all tasks"] == "4 of 12 (RW, MEN, GL, CR)"


def test_the_best_source_is_what_counts():
    said = lines(table2.claims(table(DW_MEN=0.7, LSA_MEN=0.69, DW_RG=0.9, SVD_WS=0.4, LSA_RW=0.6)))
    assert said["DW is above the best source everywhere"] == "2 of 12 (RG, MEN)"
    statement = "DW is surely above the best source in all but RG"
    assert said[statement] == "0 of 11; besides RG"
    assert said["SVD is below some source"] == "3 of 12 (WS, RW, MEN)"
    assert said["AVG is below some source"] == "2 of 12 (RW, MEN)"
    # SGNS at .5 is surely below LSA at .6 and .69, and like it elsewhere.
    assert said["SGNS is like LSA"].startswith("10 of 12 (WS, RG, GL")


def test_other_protocols_and_settings_stay_apart():
    cells = table2.CELLS | table2.BY_THE_TEXT
    rows = table(SW_GL=0.6) + table(cells=cells, SW_MSR=0.6)
    rows += [row("SW", task, 0.9, setting=table2.UNIT_ROWS) for task in table2.CELLS]
    statement = "SW is surely above the second best in GL and MSR"
    assert lines(table2.claims(rows))[statement] == "1 of 2 (GL)"
    assert lines(table2.claims(rows, cells))[statement] == "1 of 2 (MSR)"


@pytest.mark.parametrize("n", [30, 300, 3000])
def test_surely_is_fishers_test(n):
    first, second = (row("DW", "RW", value, n=n) for value in (0.55, 0.5))
    z = (math.atanh(0.55) - math.atanh(0.5)) * math.sqrt((n - 3) / 2)
    assert _scoring.surely(first, second) == (math.erfc(z / math.sqrt(2)) < 0.01)
    assert not _scoring.surely(second, first)


def test_options_change_the_configuration_and_name_the_folder(monkeypatch):
    seen = []
    given = ["--words", "20000", "--neighbours", "1200"]
    monkeypatch.setattr("sys.argv", ["table2.py", *given])
    changes = {"words": _record.words, "neighbours": table2.neighbours}
    _record.main("x", lambda *x: seen.append(x), table2.FULL, table2.SMOKE, **changes)
    ((config, out),) = seen
    assert (config.sources.size, config.neighbours) == (20_000, 1200)
    assert config.tasks == table2.FULL.tasks
    assert out == _record.ROOT / "results" / "table2_20000_1200"
    monkeypatch.setattr("sys.argv", ["table2.py", "--smoke"])
    _record.main("x", lambda *x: seen.append(x), table2.FULL, table2.SMOKE, **changes)
    assert seen[-1] == (table2.SMOKE, _record.ROOT / "results" / "table2_smoke")
