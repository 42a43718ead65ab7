"""The verdicts: corrected forms hold, and what is recorded of the printed ones still stands."""

import json

import jax
import numpy as np
import pytest

import theory
from theory.__main__ import main
from theory.verdict import Tally, at_most, equal

in_64_bit = pytest.mark.skipif(
    not jax.config.jax_enable_x64, reason="theory/ runs in 64 bit; the 64-bit leg checks it"
)
every_statement = pytest.mark.parametrize("statement", theory.STATEMENTS, ids=theory.name)


@in_64_bit
@every_statement
def test_verdict(statement):
    verdict = statement.check(np.random.default_rng(2), 400)
    assert verdict.name == theory.name(statement)
    assert verdict.claim == statement.CLAIM
    assert verdict.instances >= 400 - 5
    assert verdict.corrected.violations == 0
    assert (verdict.printed.violations == 0) == statement.PRINTED_HOLDS
    if verdict.tightness is not None:
        assert verdict.tightness.low >= 1 - 1e-9
        assert verdict.tightness.median < 1.5
    if "theorem1" in verdict.name:
        # A bound that is never attained would be wrong by a factor.
        assert verdict.tightness.low == pytest.approx(1, abs=1e-9)


@in_64_bit
def test_pinned_counterexamples():
    found = theory.counterexamples()
    assert set(found) == {theory.name(s) for s in theory.STATEMENTS if not s.PRINTED_HOLDS}
    for k in (1, 4, 25):
        example = theory.theorem1.counterexample(k)
        assert example.truth == pytest.approx(np.sqrt(2 * k))
        assert example.printed == pytest.approx(1 + np.sqrt(2))
        assert example.corrected == pytest.approx(2 * np.sqrt(2 * k))
        single = theory.theorem1_single_source.counterexample(k)
        assert single.truth == pytest.approx(np.sqrt(3 * k))
        assert single.printed == pytest.approx(np.sqrt(k + 1))
    near = "aligned_weights", "rotation_invariant_weights"
    bounds = "theorem1", "theorem1_n_sources", "theorem1_single_source", "different_alphas"
    for name in bounds:
        assert found[name].printed < found[name].truth <= found[name].corrected
    for name in set(found) - {*near, *bounds, "weights_minimise_loss"}:
        assert found[name].corrected == pytest.approx(found[name].truth, abs=1e-9)
        if name != "rotation":  # where the print claims a change and there is none
            assert abs(found[name].printed - found[name].truth) > 0.01
    for name in near:
        assert found[name].truth <= found[name].corrected < 1.05 < found[name].printed
    example = found["weights_minimise_loss"]
    assert example.printed < example.truth <= example.corrected * (1 + 1e-12)


@in_64_bit
def test_same_seed_same_verdicts(monkeypatch):
    monkeypatch.setattr(theory, "STATEMENTS", (theory.telescoping, theory.rank_rule))
    first, second = (list(theory.run(instances=50, seed=3)) for _ in range(2))
    assert first == second
    assert first != list(theory.run(instances=50, seed=4))


@in_64_bit
def test_command_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(theory, "STATEMENTS", (theory.telescoping, theory.lemma1))
    file = tmp_path / "new" / "verdicts.json"
    monkeypatch.setattr("sys.argv", ["theory", "--instances", "50", "--json", str(file)])
    assert main() == 0
    printed = capsys.readouterr().out
    assert "telescoping" in printed
    assert "all verdicts as recorded" in printed
    rows = json.loads(file.read_text())["statements"]
    assert [row["name"] for row in rows] == ["telescoping", "lemma1"]
    assert rows[0]["printed"]["violations"] > 0
    assert rows[0]["counterexample"]["truth"] == pytest.approx(np.sqrt(2))
    assert rows[1]["counterexample"] is None
    assert list(file.parent.iterdir()) == [file]


@in_64_bit
def test_a_changed_verdict_fails_the_command(monkeypatch, capsys):
    monkeypatch.setattr(theory, "STATEMENTS", (theory.telescoping,))
    monkeypatch.setattr(theory.telescoping, "PRINTED_HOLDS", True)
    monkeypatch.setattr("sys.argv", ["theory", "--instances", "50"])
    assert main() == 1
    assert "not as recorded: telescoping" in capsys.readouterr().out


def test_too_few_instances(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["theory", "--instances", "3"])
    with pytest.raises(SystemExit):
        main()
    assert "--instances: got 3, expected at least 10" in capsys.readouterr().err


def test_tallies():
    assert at_most([1.0, 3.0], [2.0, 2.0], 1) == Tally(1, 0.5)
    assert at_most([1.0], [0.0], 1) == Tally(1, np.inf)
    assert at_most([np.nan], [1.0], 1).violations == 1
    assert equal([1.0, 2.0], [1.0, 1.0], 2) == Tally(1, 0.5)
    assert equal([np.nan], [1.0], 1).violations == 1


@in_64_bit
def test_figures(tmp_path):
    figures = pytest.importorskip("theory.figures")
    paths = list(figures.draw_all(tmp_path, instances=60, seed=0))
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert len(paths) == 3
    for path in paths:
        assert path.read_bytes().startswith(b"\x89PNG")
