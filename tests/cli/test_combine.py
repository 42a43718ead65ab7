"""`jaxmeta combine` and `jaxmeta apply` do what the library does."""

import re

import jax
import numpy as np
import pytest
from helpers import EPS, assert_close

import jaxmeta as jm

WIDE, NARROW = 5, 3


def read(path):
    return jm.read_vectors(path)


def by_the_library(files, name="default", **settings):
    given = {"vocabulary": settings.pop("vocabulary", "intersection")}
    given["missing"] = settings.pop("missing", "zero")
    together = jm.align([jm.read_vectors(path) for path in files], **given)
    return jm.meta_embedding(name, together, jm.Settings(**settings))


def test_the_default(told, files):
    facts = told("combine", *files, "-o", "both.npz")
    found, expected = read("both.npz"), by_the_library(files)
    assert found.words == expected.words
    # Moments of blocks are summed up in float64, of arrays in float32.
    eps = max(EPS, float(np.finfo(np.float32).eps))
    scale = np.linalg.norm(expected.matrix)
    assert_close(
        found.matrix @ found.matrix.T, expected.matrix @ expected.matrix.T,
        scale=scale**2, terms=64, eps=eps,
    )  # fmt: skip
    assert facts["words"] == len(found) == 22
    assert facts["dimensions"] == facts["of"] == WIDE + NARROW
    assert facts["changed"] is None
    assert [source["name"] for source in facts["sources"]] == ["wide", "narrow"]
    assert [source["share"] for source in facts["sources"]] == [1, 1]


def test_concatenation_is_exact(run, files):
    code, out, err = run("combine", *files, "-o", "both.npz", "--method", "uw")
    assert (code, err) == (0, "")
    assert "both.npz: 22 words x 8 dimensions" in out
    first, second = map(read, files)
    found = read("both.npz")
    for row, word in zip(found.matrix, found.words, strict=True):
        np.testing.assert_array_equal(row, np.append(first[word], second[word]))


def test_dimensions(told, run, files):
    facts = told("combine", *files, "-o", "auto.npz", "--k", "auto")
    assert facts["dimensions"] == read("auto.npz").matrix.shape[1] == 4  # the rank of all
    assert facts["of"] == WIDE + NARROW
    assert facts["changed"] <= 0.05
    assert told("combine", *files, "-o", "two.npz", "--k", "2")["dimensions"] == 2
    assert told("combine", *files, "-o", "all.npz", "--k", "0.9")["dimensions"] == 1
    code, _, err = run("combine", *files, "-o", "none.npz", "--k", "many")
    assert code == 2
    assert "--k: got 'many', expected all, auto, a number or a share" in err


def test_vocabularies(told, run, files, tmp_path):
    assert told("combine", *files, "-o", "union.npz", "--vocabulary", "union")["words"] == 24
    (tmp_path / "words").write_text("word3\nword0\n\nnothing\n", encoding="utf-8")
    facts = told("combine", *files, "-o", "some.npz", "--vocabulary", "words", "--method", "UW")
    assert facts["words"] == 2
    assert read("some.npz").words == ("word3", "word0")
    assert [source["filled"] for source in facts["sources"]] == [0, 1]
    code, _, err = run("combine", *files, "-o", "x.npz", "--vocabulary", "unoin")
    assert code == 2
    assert "'unoin', which is no file" in err


def test_methods_that_need_all_rows(told, files):
    facts = told(
        "combine", *files, "-o", "p.npz", "--vocabulary", "union", "--missing", "predict",
        "--method", "UW", "--save-plan", "p.plan",
    )  # fmt: skip
    expected = by_the_library(files, "UW", vocabulary="union", missing="predict")
    np.testing.assert_array_equal(read("p.npz").matrix, expected.matrix)
    assert facts["sources"][1]["how"] == "predict"
    assert jm.files.plan_header("p.plan")["names"] == ["wide", "narrow"]
    facts = told("combine", *files, "-o", "l.npz", "--method", "LLE", "--k", "2", "--seed", "3")
    expected = by_the_library(files, "LLE", k=2, key=jax.random.key(3))
    np.testing.assert_array_equal(read("l.npz").matrix, expected.matrix)
    assert facts["dimensions"] == 2


def test_dtype(run, files):
    code, *_ = run("combine", *files, "-o", "half.npz", "--dtype", "float16", "--method", "UW")
    assert code == 0
    assert read("half.npz").matrix.dtype == np.float16


def test_a_plan_for_other_files(told, run, files):
    told("combine", *files, "-o", "both.npz", "--k", "3", "--save-plan", "both.plan")
    facts = told("apply", "both.plan", *files, "-o", "again.npz")
    np.testing.assert_array_equal(read("again.npz").matrix, read("both.npz").matrix)
    assert facts["fitted_to"] == ["wide", "narrow"]
    assert facts["rows_fitted_to"] == 22
    few = [(0, 5), (3, 8)]
    for (start, stop), path, name in zip(few, files, ("new1.npz", "new2.npz"), strict=True):
        words, matrix = read(path)
        jm.write_vectors(name, (words[start:stop], matrix[start:stop]))
    code, out, err = run("apply", "both.plan", "new1.npz", "new2.npz", "-o", "new.npz",
                         "--vocabulary", "union")  # fmt: skip
    assert (code, err) == (0, "")
    assert "The plan was fitted to wide and narrow, in that order." in out
    assert set(read("new.npz").words) == {f"word{i}" for i in range(10)}


def test_wrong_plans(run, files, tmp_path):
    run("combine", *files, "-o", "both.npz", "--save-plan", "both.plan")
    code, _, err = run("apply", "both.plan", *files[::-1], "-o", "new.npz")
    assert code == 2
    assert "pass them in that order" in err
    code, _, err = run("apply", "both.plan", files[0], files[0], "-o", "new.npz")
    assert code == 2
    assert "widths (5, 5), expected (5, 3)" in err
    code, _, err = run("apply", files[0], *files, "-o", "new.npz")
    assert code == 2
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "new.npz").exists()


@pytest.mark.one_leg
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-o", "x.npz", "--method", "defalt"], "the nearest is 'default'"),
        (["-o", "x.npz", "--method", "DW"], "expected it for"),
        (["-o", "x.npz", "--missing", "guess"], "expected zero, mean, predict"),
        (["-o", "x.npz", "--dtype", "int8"], "expected float16, float32, float64"),
        (["-o", "x.xyz"], "'.xyz'"),
        (["-o", "x.npz", "--report", "x.pdf"], "a name ending in .html or .png"),
        (["-o", "x.npz", "--save-plan", "x.npz"], "expected a file for each"),
        (["-o", "x.npz", "--method", "LLE", "--save-plan", "x.plan"], "choose a linear method"),
        (["-o", "x.npz", "--method", "LLE", "--k", "auto"], "has no spectrum to cut"),
    ],
)
def test_bad_input(run, files, tmp_path, more, message):
    code, out, err = run("combine", *files, *more)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.one_leg
def test_what_is_there_stays(run, files, tmp_path):
    for name in ("both.npz", "list.words.txt"):
        (tmp_path / name).write_text("mine")
    for out in ("both.npz", "list.npy"):
        code, _, err = run("combine", *files, "-o", out)
        assert code == 2
        assert "pass --force to replace it" in err
    assert (tmp_path / "both.npz").read_text() == "mine"
    code, _, err = run("combine", *files, "-o", files[0], "--force")
    assert code == 2
    assert "inputs are never replaced" in err
    assert run("combine", *files, "-o", "both.npz", "--method", "UW", "--force")[0] == 0
    assert len(read("both.npz")) == 22


@pytest.mark.one_leg
def test_list(run):
    code, out, _ = run("combine", "--list")
    assert code == 0
    for name, method in jm.METHODS.items():
        assert f"{name} " in out
        assert method.summary in out


@pytest.mark.one_leg
@pytest.mark.slow
def test_reports(run, files, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, err = run("combine", *files, "-o", "both.npz", "--report", "both.html", "--k", "3")
    assert (code, err) == (0, "")
    assert "report: both.html" in out
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert "both.npz: 22 words, 3 dimensions of 8" in page
    assert page.count("data:image/png;base64,iVBOR") == 2
    assert not re.search(r"https?:|<script|<link|src=\"(?!data:)", page)
    shares = re.search(r"wide (\d+)% before and (\d+)% now; narrow (\d+)% before", page)
    assert int(shares[1]) < int(shares[2])
    assert int(shares[1]) + int(shares[3]) in (99, 100, 101)
    assert run("combine", *files, "-o", "b.npz", "--report", "b.png", "--method", "UW")[0] == 0
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")
