"""`jaxmeta verify` is `python -m theory`, from wherever the package is."""

import sys

import pytest

pytestmark = pytest.mark.one_leg


def test_list(run, told):
    code, out, err = run("verify", "--list", "--only", "telescoping,lemma1")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["lemma1", "telescoping"]
    assert len(told("verify", "--list")) > 30


def test_verdicts(run, told):
    code, out, err = run("verify", "--instances", "10", "--only", "telescoping")
    assert (code, err) == (0, "")
    assert "all verdicts as recorded" in out
    found = told("verify", "--instances", "10", "--only", "telescoping", "--seed", "3")
    assert (found["seed"], found["instances"]) == (3, 10)
    assert (found["not_as_recorded"], found["undecided"]) == ([], [])
    (row,) = found["statements"]
    assert row["name"] == "telescoping"
    assert row["printed"]["violations"] > 0
    assert row["corrected"]["violations"] == 0


def test_another_verdict(run, monkeypatch):
    run("verify", "--list")
    monkeypatch.setattr(sys.modules["jaxmeta.theory.telescoping"], "PRINTED_HOLDS", True)
    code, out, _ = run("verify", "--instances", "10", "--only", "telescoping")
    assert code == 1
    assert "not as recorded: telescoping" in out


def test_bad_input(run):
    code, _, err = run("verify", "--only", "lema2")
    assert (code, err) == (
        2, "error: --only: got 'lema2', expected names of --list; nearest is 'lemma2'\n"
    )  # fmt: skip


@pytest.mark.slow
def test_figures(told, tmp_path):
    pytest.importorskip("matplotlib")
    found = told("verify", "--instances", "60", "--only", "lemma1", "--figures", "drawn")
    assert len(found["figures"]) == 3
    assert len(list((tmp_path / "drawn").iterdir())) == 3
