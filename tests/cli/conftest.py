"""Small files, and the command run in this process."""

import json

import numpy as np
import pytest

import jaxmeta as jm

WORDS = tuple(f"word{i}" for i in range(24))


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """Two files that see the same rows: `wide` of all words, `narrow` of all but the first two."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(len(WORDS), 4)).astype(np.float32)
    folder = tmp_path_factory.mktemp("inputs")
    wide = np.concatenate([truth, 0.1 * truth[:, :1]], axis=1)
    jm.write_vectors(folder / "wide.bin", (WORDS, wide))
    jm.write_vectors(folder / "narrow.txt.gz", (WORDS[2:], 5 * truth[2:, :3]))
    return folder


@pytest.fixture
def files(inputs):
    return [str(inputs / name) for name in ("wide.bin", "narrow.txt.gz")]


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run the command in an empty folder: exit code, what it says, and what goes wrong."""
    pytest.importorskip("typer")
    from jaxmeta.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAXMETA_DATA", raising=False)

    def run(*arguments):
        code = main(list(map(str, arguments)))
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def told(run):
    """The JSON document of a command that succeeds, which is all that it says."""

    def told(*arguments):
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (0, "")

        def refuse(constant):
            raise AssertionError(f"{constant} is no JSON")

        return json.loads(out, parse_constant=refuse)

    return told
