"""`jaxmeta train` and `jaxmeta dimension` go from text to vectors, and on where they stopped."""

import numpy as np
import pytest

import jaxmeta as jm
from jaxmeta.text import _steps

pytestmark = [pytest.mark.one_leg, pytest.mark.slow]

OPTIONS = "--size", "0", "--window", "2", "--lines"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    model = jm.text.latent_model(30, rank=3, strength=0.8, seed=0)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    tokens = jm.text.sample_tokens(model, tokens=20_000, documents=50, seed=0)
    jm.text.write_corpus(path, model, tokens)
    return path


def test_train(told, run, corpus, monkeypatch):
    arguments = "train", corpus, "-o", "meta.npz", "--signal", "GloVe,LSA", *OPTIONS
    kept = "--cache", "steps", "--save-sources", "sources"
    found = told(*arguments, *kept, "--method", "UW")
    assert (found["rule"], found["words"]) == ("equalised", 30)
    assert [source["name"] for source in found["sources"]] == ["GloVe", "LSA"]
    meta = jm.read_vectors("meta.npz")
    parts = [jm.read_vectors(f"sources/{name}.npz") for name in ("GloVe", "LSA")]
    assert [part.matrix.shape[1] for part in parts] == [s["k"] for s in found["sources"]]
    np.testing.assert_array_equal(meta.matrix, np.hstack([part.matrix for part in parts]))
    # Nothing is counted again.
    monkeypatch.setattr(_steps, "count_windows", None)
    monkeypatch.setattr(_steps, "build_vocabulary", None)
    again = told(*arguments, *kept, "--method", "UW", "--force")
    assert again == found
    code, out, _ = run(*arguments, *kept, "--method", "UW", "--force")
    assert code == 0
    assert "meta.npz: 30 words x" in out
    code, _, err = run(*arguments, *kept)
    assert code == 2
    assert "pass --force" in err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--rule", "equalized"], "the nearest is 'equalised'"),
        (["--signal", "Glowe"], "the nearest is 'GloVe'"),
        (["--signal", "LSA", "--signal", "lsa"], "expected each signal once"),
    ],
)
def test_bad_input(run, corpus, tmp_path, more, message):
    code, out, err = run("train", corpus, "-o", "meta.npz", *OPTIONS, *more)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.iterdir())


def test_dimension_of_text(told, corpus, tmp_path):
    pytest.importorskip("matplotlib")
    found = told("dimension", corpus, "--signal", "LSA", *OPTIONS, "--plot", "k.png")
    assert set(found["k"]) == {*jm.RULES, "equalised"}
    assert found["k"]["released"] == found["k"]["paper"] - 1
    assert found["sigma"]["nested"] > 0
    expected, _ = found["curves"].values()
    assert 1 + int(np.argmin(expected)) == found["k"]["equalised"]
    assert (tmp_path / "k.png").read_bytes().startswith(b"\x89PNG")


def test_dimension_of_files(told, run, files):
    found = told("dimension", *files, "--method", "UW")
    assert (found["words"], found["dimensions"]) == (22, 8)
    curve = np.array(found["curve"])
    assert curve[0] == pytest.approx(1)
    assert (np.diff(curve) <= 0).all()
    for each in found["fewest"]:
        assert curve[each["k"]] <= each["share"] < curve[each["k"] - 1]
    code, out, _ = run("dimension", *files)
    assert code == 0
    assert "inner products may change by" in out
    code, _, err = run("dimension", *files, "--signal", "LSA")
    assert code == 2
    assert "expected one text and one signal" in err
