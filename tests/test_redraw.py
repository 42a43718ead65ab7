"""Figures can be drawn again from the tables in results/, and show differences as they are."""

import shutil

import pytest

from experiments import _forest, _record, redraw

pytestmark = pytest.mark.one_leg
RESULTS = _record.ROOT / "results"


def test_every_kept_figure_of_a_table_can_be_drawn_again():
    drawn = {path.parent.name for path in RESULTS.glob("*/*.png") if not path.match("*_smoke/*")}
    tables = {path.parent.name for path in RESULTS.glob("*/rows.csv")}
    assert {name for name in drawn & tables if redraw.experiment(name) is None} == set()
    assert redraw.experiment("corpus_to_sources_10000") == "corpus_to_sources"
    assert redraw.experiment("table10") is None


@pytest.mark.parametrize("name", ["spectrum_and_k", "table3"])
def test_figures_are_drawn_again_and_nothing_else_changes(name, tmp_path):
    folder = tmp_path / "results" / name
    shutil.copytree(RESULTS / name, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in folder.glob("*.png"):
        path.unlink()
    redraw.main([name], tmp_path)
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after.keys() == before.keys()
    assert all(after[x] == before[x] for x in before if not x.endswith(".png"))


def test_unknown_folder_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="table10: got the folder of no known experiment"):
        redraw.main(["table10"], tmp_path)


def test_an_outlier_does_not_stretch_the_axis():
    usual = [-2.0, -1.0, 0.5, 1.0, 3.0]
    low, high = _forest.limits([*usual, -80.0])
    assert -4 < low < -2
    assert 3 < high < 5
    assert _forest.limits([2.0, 3.0])[0] < 0  # 0 is on it
    assert _forest.limits([0.0, 0.0]) == (-1.0, 1.0)


def test_colours_say_on_which_side_of_0_an_interval_is():
    above, below, neither = (_forest.points(x, x - 0.02, x + 0.02) for x in (0.03, -0.03, 0.01))
    assert above == pytest.approx((3, 1, 5))
    found = [one.colour for one in (above, below, neither)]
    assert found == [_forest.ABOVE, _forest.BELOW, _forest.UNSURE]
    panels = {
        "one task": {"A": neither, "B": above},
        "another": {"A": below, "B": below},
    }
    assert _forest.verdict(panels, "C", "tasks") == (
        "“B” is surely above C in 1 of 2 tasks, below in 1"
    )
    same = {"one task": {"A": neither}}
    assert _forest.verdict(same, "C", "tasks") == "nothing is surely above C"
