"""The figure of a diagnosis, as a file."""

import sys

import numpy as np
import pytest
from helpers import cast

from jaxmeta import plot_diagnosis
from jaxmeta.diagnosis import diagnose

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


def test_figure_without_matplotlib(sources, tmp_path, monkeypatch):
    found = diagnose(sources)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(
        ImportError, match=r"matplotlib.*: got no .*; pip install 'jaxmeta\[plot\]'"
    ):
        plot_diagnosis(found, tmp_path / "figure.png")
    assert not list(tmp_path.iterdir())
