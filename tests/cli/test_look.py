"""`jaxmeta inspect`, `compare` and `neighbours` show what the library says."""

import numpy as np
import pytest

import jaxmeta as jm

pytestmark = pytest.mark.one_leg


def together(files):
    return jm.align([jm.read_vectors(path) for path in files])


def test_inspect(told, files):
    found = told("inspect", *files)
    wide, narrow = found["files"]
    assert wide["name"] == "wide"
    assert (wide["words"], wide["dimensions"], wide["dtype"]) == (24, 5, "float32")
    assert 1 < wide["needed"] <= 4  # of its five columns one is a multiple of another
    assert narrow["words"] == 22
    assert (narrow["zero_rows"], narrow["repeated_rows"], narrow["repeated_words"]) == (0, 0, None)
    assert found["overlaps"] == [{"first": "wide", "second": "narrow", "common_words": 22}]
    expected = jm.diagnose(together(files).sources, names=("wide", "narrow"))
    assert found["diagnosis"]["verdict"] == expected.verdict
    np.testing.assert_allclose(found["diagnosis"]["cka"], expected.cka, rtol=1e-5)


def test_inspect_says_what_is_odd(run, tmp_path):
    (tmp_path / "odd.txt").write_text("a 1 2\nb 0 0\nc 1 2\na 5 5\n")
    jm.write_vectors(tmp_path / "other.npz", (("x", "y"), np.eye(2)))
    code, out, err = run("inspect", "odd.txt", "other.npz")
    assert (code, err) == (0, "")
    odd = next(line.split() for line in out.splitlines() if line.startswith("odd "))
    assert odd[1] == "3"
    assert odd[-2:] == ["1", "1"]
    assert "1 rows repeat a word and were dropped" in out
    assert "odd and other: 0 common words." in out
    assert "too few for a diagnosis" in out
    code, _, err = run("inspect", "odd.txt", "other.npz", "--plot", "x.png")
    assert code == 2
    assert "0 common words" in err


def test_inspect_draws(run, files, tmp_path):
    pytest.importorskip("matplotlib")
    code, out, err = run("inspect", *files, "--plot", "x.png")
    assert (code, err) == (0, "")
    assert "dominates" in out
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_compare(told, run, files):
    found = told("compare", *files)
    assert found["words"] == 22
    (pair,) = found["pairs"]
    assert (pair["first"], pair["second"]) == ("wide", "narrow")
    e, f = together(files).sources
    assert pair["pip_loss"] == pytest.approx(float(jm.pip_loss(e, f)), rel=1e-5)
    assert pair["cka"] == pytest.approx(float(jm.similarity.cka(e, f)), rel=1e-5)
    assert pair["unbiased_cka"] < pair["cka"] < 1
    assert 0 < pair["procrustes_distance"] < 2**0.5
    code, out, _ = run("compare", *files)
    assert code == 0
    assert "unbiased CKA" in out
    code, _, err = run("compare", files[0])
    assert code == 2
    assert "expected two or more" in err


def test_neighbours(told, run, files):
    found = told("neighbours", "word5", *files, "--count", "3", "--method", "UW")
    assert list(found["neighbours"]) == ["wide", "narrow", "together: UW"]
    both = together(files)
    for name, matrix in zip(("wide", "narrow"), both.sources, strict=True):
        expected = jm.Vectors(both.words, np.asarray(matrix)).most_similar("word5", 3)
        near = [(each["word"], each["cosine"]) for each in found["neighbours"][name]]
        assert near == expected
    code, out, _ = run("neighbours", "word5", files[0])
    assert code == 0
    assert "together" not in out
    code, _, err = run("neighbours", "word0", *files)
    assert code == 2
    assert "WORD: got 'word0', expected one of the 22 that all files have" in err
