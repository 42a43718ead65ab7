"""The command as a whole: help, errors, Ctrl-C, and nothing imported for nothing."""

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import jaxmeta
import jaxmeta.cli

pytestmark = pytest.mark.one_leg

COMMANDS = (
    "verify", "combine", "apply", "inspect", "compare", "neighbours", "train", "dimension",
    "evaluate", "data",
)  # fmt: skip
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(jaxmeta.__file__).parent.parent)}


def process(*arguments, **options):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT,
        **options,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    code, out, err = run(command, "--help")
    assert (code, err) == (0, "")
    assert f"Example: jaxmeta {command} " in " ".join(out.split())


def test_help_of_the_module_imports_no_jax(tmp_path):
    found = process("-X", "importtime", "-m", "jaxmeta", "--help", cwd=tmp_path)
    imported = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert "jaxmeta.cli.combine" in imported
    assert not imported & {"jax", "numpy", "scipy", "matplotlib"}
    for command in COMMANDS:
        assert f"│ {command} " in found.stdout
    assert "130 Ctrl-C" in " ".join(found.stdout.split())
    assert found.returncode == 0


def test_no_arguments_show_the_help(run):
    code, out, _ = run()
    assert code == 0
    assert "Usage: jaxmeta" in out


def test_version(run):
    assert run("--version") == (0, f"jaxmeta {jaxmeta.__version__}\n", "")


def test_without_the_extra(monkeypatch, capsys):
    spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda x: None if x == "typer" else spec(x))
    assert jaxmeta.cli.main(["--help"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", 'jaxmeta: the command needs typer: pip install "jaxmeta[cli]"\n')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["combin"], "Did you mean 'combine'"),
        (["combine"], "Missing argument 'FILE'.\njaxmeta combine --help shows how it is used"),
        (["inspect", "nothing.bin"], "'nothing.bin' does not exist"),
        (["verify", "--instances", "3"], "--instances"),
    ],
)
def test_wrong_usage(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) <= 2


def test_faults_show_where_they_come_from_if_asked(run, files, monkeypatch):
    def fault(*_, **__):
        raise RuntimeError("what nobody thought of")

    monkeypatch.setattr("jaxmeta.cli.look.read_aligned", fault)
    code, out, err = run("compare", *files)
    assert (code, out) == (3, "")
    assert err.startswith("error: RuntimeError: what nobody thought of\n")
    assert "Traceback" not in err
    for arguments in (("--debug", "compare", *files), ("compare", *files, "--debug")):
        code, _, err = run(*arguments)
        assert code == 3
        assert "Traceback" in err


def test_too_little_memory(run, files, monkeypatch):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr("jaxmeta.cli.look.read_aligned", full)
    assert run("compare", *files) == (
        2, "", "error: not enough memory; choose fewer words, by --vocabulary FILE\n"
    )  # fmt: skip


def test_interrupts_leave_nothing(files, tmp_path):
    """The signal comes when a part of the result is written."""
    code = f"""
import os, signal, sys
from jaxmeta.cli import combine, main
def interrupt(stage, fraction):
    if stage == "vectors" and fraction > 0:
        print(*sorted(os.listdir()), flush=True)
        os.kill(os.getpid(), signal.SIGINT)
combine.progress = lambda: interrupt
import jaxmeta.files.merge as merge
merge.BLOCK = 64
sys.exit(main(["combine", *{files!r}, "-o", "both.npz", "--method", "UW",
               "--save-plan", "both.plan"]))
"""
    found = process("-c", code, cwd=tmp_path)
    assert found.returncode == 130 == 128 + signal.SIGINT
    assert found.stdout.count(".part") >= 2  # the result and the plan
    assert "Traceback" not in found.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("jaxmeta comb", ["combine"]),
        ("jaxmeta combine --method def", ["default"]),
        ("jaxmeta train --rule eq", ["equalised"]),
        ("jaxmeta train --signal SG", ["SGNS"]),
        ("jaxmeta verify --only lemma1", ["lemma1", "lemma1_any_norm"]),
        ("jaxmeta evaluate --task SimL", ["SimLex-999"]),
        ("jaxmeta combine --missing ", ["zero", "mean", "predict"]),
    ],
)
def test_completion(run, monkeypatch, capsys, words, completed):
    monkeypatch.setenv("_JAXMETA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit):
        run()
    assert capsys.readouterr().out.split() == completed
