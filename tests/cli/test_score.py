"""`jaxmeta evaluate` and `jaxmeta data`: scores, and what is there to score on."""

import json

import numpy as np
import pytest

import jaxmeta as jm
from jaxmeta.evaluate import DATASETS

pytestmark = pytest.mark.one_leg


@pytest.fixture
def folder(tmp_path):
    """A folder with pairs of our own for RG-65, half of them unknown to the narrow file."""
    rng = np.random.default_rng(1)
    lines = [f"word{i} word{j} {rng.normal():.2f}" for i in range(4) for j in range(5, 11)]
    path = tmp_path / "data" / DATASETS["RG-65"].files[0].path
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(lines))
    return tmp_path / "data"


def test_evaluate(run, files, folder):
    code, out, err = run("evaluate", *files, "--task", "RG-65", "--folder", folder)
    assert code == 0
    assert "warning: " in err  # it is not the file that the registry has
    assert "SHA-256" in err
    with pytest.warns(jm.evaluate.OtherEdition):
        pairs = jm.evaluate.load("RG-65", folder)
    score = jm.evaluate.similarity(jm.read_vectors(files[0]), pairs)
    assert f"{100 * score.value:.1f} [{100 * score.low:.1f}, {100 * score.high:.1f}]" in out
    assert "on 24 of 24" in out
    assert "on 12 of 24" in out
    code, out, err = run("evaluate", *files, "--task", "RG-65", "--folder", folder, "--common")
    assert out.count("on 12 of 24") == 2
    assert "on 22 words that all files have" in err


def test_evaluate_as_json(run, files, folder, monkeypatch):
    monkeypatch.setenv("JAXMETA_DATA", str(folder))
    code, out, _ = run("evaluate", files[0], "--task", "rg-65", "--json")
    assert code == 0
    (score,) = json.loads(out)["scores"]
    assert list(score) == [
        "name", "file", "task", "metric", "value", "low", "high", "covered", "total"
    ]  # fmt: skip
    assert score["low"] < score["value"] < score["high"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "RG-66"], "the nearest is 'RG-65'"),
        (["--task", "MEN"], "`jaxmeta data MEN --fetch` downloads it"),
        (["--task", "SICK-E"], "download sick_train.zip"),
    ],
)
def test_missing_tasks(run, files, folder, arguments, message):
    code, out, err = run("evaluate", files[0], "--folder", folder, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_no_folder(run, files):
    code, _, err = run("evaluate", files[0])
    assert code == 2
    assert "no JAXMETA_DATA" in err
    code, _, err = run("data", "MEN", "--fetch")
    assert code == 2
    assert "a folder to download to" in err


def test_data(run, told, folder):
    code, out, err = run("data", "--folder", folder)
    assert (code, err) == (0, "")
    lines = {line.split("  ")[0]: line for line in out.splitlines()}
    for name in DATASETS:
        assert name in lines
    assert "another edition" in lines["RG-65"]
    assert "missing" in lines["SICK"]
    assert "SICK-E, SICK-R" in lines["SICK"]
    assert "SICK: download sick_train.zip" in out
    found = told("data", "MEN", "--folder", folder)["data"]
    assert [row["status"] for row in found] == ["missing"]
    assert told("data", "MEN")["data"][0]["status"] == "no folder"


def test_fetch(run, folder, monkeypatch):
    """What has an address is asked for, and what is still missing is told by the exit code."""
    asked = []

    def fetch(name, into):
        asked.append(name)
        for file in DATASETS[name].files:
            (into / file.path).parent.mkdir(parents=True, exist_ok=True)
            (into / file.path).write_text("a b 1\n")

    monkeypatch.setattr(jm.evaluate, "fetch", fetch)
    code, out, _ = run("data", "MEN,WS-353", "--fetch", "--folder", folder)
    assert code == 0
    assert asked == ["MEN", "WS-353"]
    assert "missing" not in out
    code, out, _ = run("data", "MEN", "SICK", "--fetch", "--folder", folder)
    assert code == 1
    assert asked[2:] == ["MEN"]
    assert run("data", "--fetch", "--folder", folder)[0] == 0
