"""The figure of a diagnosis, as a file."""

import sys

import numpy as np
import pytest
from helpers import cast

from jaxmeta import plot_diagnosis
from jaxmeta.diagnosis import diagnose
from jaxmeta.plot import plot_curves

pytestmark = pytest.mark.one_leg
WORDS = ["$x^$", "a_b", *"cdefghijklmno"]  # dollar signs are no formula


@pytest.fixture(scope="module")
def sources():
    """Three, one of them zero: widths that test_diagnosis has too."""
    rng = np.random.default_rng(0)
    return cast(tuple(rng.normal(size=(15, k)) * (k != 2) for k in (3, 2, 4)))


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_figure(sources, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    found = diagnose(sources, names=("$N", "b$", "c"), words=WORDS)
    path = tmp_path / "below" / f"figure{suffix}"
    plot_diagnosis(found, path)
    assert path.stat().st_size > 10_000
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    if suffix == ".svg":  # one source, no words
        plot_diagnosis(diagnose(sources[:1]), path)


def test_title(sources, tmp_path):
    """The verdict stands above the figure, unless something else is to."""
    pytest.importorskip("matplotlib")
    found, path = diagnose(sources), tmp_path / "figure.svg"
    opening = " ".join(found.verdict.split()[:4])
    for title, stands in ((None, True), ("of our own", False), ("", False)):
        plot_diagnosis(found, path, title=title)
        page = path.read_text()
        assert (f"<!-- {opening}" in page) == stands
        assert ("<!-- of our own -->" in page) == (title == "of our own")


def test_curves(tmp_path):
    """What is chosen beyond the curve stands in the legend alone."""
    pytest.importorskip("matplotlib")
    path = tmp_path / "curves.svg"
    curves = {"$first": np.array([3.0, 1.0, 2.0]), "second": np.ones(5)}
    chosen = {"rule": 2, "same": 2, "$none": 0, "far": 9}
    plot_curves(curves, chosen, path, title="A $title", ylabel="loss")
    page = path.read_text()
    for text in ("$first", "second", "rule, same: k = 2", "$none: k = 0", "far: k = 9", "A $title"):
        assert f"<!-- {text} -->" in page


def test_figure_without_matplotlib(sources, tmp_path, monkeypatch):
    found = diagnose(sources)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        ImportError, match=r"matplotlib.*: got no .*; pip install 'jaxmeta\[plot\]'"
    ):
        plot_diagnosis(found, tmp_path / "figure.png")
    assert not list(tmp_path.iterdir())
