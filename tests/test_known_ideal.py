"""The experiment with a known ideal, at its smallest: what is estimated approaches the ideal."""

import csv
import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest

import jaxmeta
from experiments import _known_ideal, known_ideal

pytestmark = [pytest.mark.one_leg, pytest.mark.slow]

# Smaller than --smoke. A factor of 16 in size is one of 4 in noise.
CONFIG = dataclasses.replace(known_ideal.SMOKE, n=40, rank=3, tokens=(16_000, 256_000))


def ideal_of_few_candidates(eigenvalues, sigma, alpha):
    """The rule "ideal", faster; with all its candidates it is tested with the sources."""
    strengths = jaxmeta.ideal_strengths(eigenvalues, sigma=sigma, alpha=alpha, size=48).values
    return jaxmeta.best_dimension(jnp.abs(eigenvalues), strengths, alpha=alpha)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "known_ideal"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(jaxmeta.RULES, "ideal", ideal_of_few_candidates)
        return out, *known_ideal.report(CONFIG, out)


def test_files_are_written(known):
    out, rows, losses = known
    names = {"rows.csv", "losses.csv", "known_ideal.png", "provenance.json"}
    assert {path.name for path in out.iterdir()} == names
    for name, table in (("rows.csv", rows), ("losses.csv", losses)):
        with (out / name).open(newline="") as file:
            assert len(list(csv.reader(file))) == 1 + len(table)
    record = json.loads((out / "provenance.json").read_text())
    assert record["dtype"] == "float64"
    assert record["config"]["first_seed"] == 1000
    assert (out / "known_ideal.png").stat().st_size > 10_000


def test_every_signal_and_rule_is_there(known):
    _, rows, losses = known
    settings = [(tokens, signal) for tokens in CONFIG.tokens for signal in known_ideal.SIGNALS]
    assert [(row.tokens, row.signal) for row in rows] == settings
    assert {row.corpora for row in rows} == {CONFIG.seeds}
    for setting in settings:
        rules = {x.rule for x in losses if (x.tokens, x.signal) == setting}
        assert rules == set(_known_ideal.LOSSES)


@pytest.mark.parametrize("signal", known_ideal.SIGNALS)
def test_noise_falls_as_the_root_of_the_corpus(known, signal):
    _, rows, _ = known
    own = [row for row in rows if row.signal == signal]
    for row in own:
        if row.systematic > 0:
            assert row.random**2 + row.systematic**2 == pytest.approx(row.noise**2)
    # In twenty other draws of this size exponents were between -0.55 and -0.41 (the largest were
    # PPMI's, which cuts off noise around 0), ratios of sigma to the noise between 0.88 and 1.05.
    for name in ("sigma", "noise"):
        fitted = _known_ideal.exponent(CONFIG.tokens, [getattr(row, name) for row in own])
        assert fitted == pytest.approx(-0.5, abs=0.1), name
    assert own[-1].ratio == pytest.approx(1, abs=0.15)
    # What is extrapolated errs by more: -0.59 to -0.32, and 0.83 to 1.30, in twelve other draws.
    fitted = _known_ideal.exponent(CONFIG.tokens, [row.nested for row in own])
    assert fitted == pytest.approx(-0.5, abs=0.2)
    assert own[-1].nested_ratio == pytest.approx(1, abs=0.35)


@pytest.mark.parametrize("signal", known_ideal.SIGNALS)
def test_spectra_and_losses_fall(known, signal):
    _, rows, losses = known
    small, large = (row for row in rows if row.signal == signal)
    for name in _known_ideal.ESTIMATES:
        assert getattr(large, name) < getattr(small, name)
    for rule in _known_ideal.LOSSES:
        small, large = (x for x in losses if (x.signal, x.rule) == (signal, rule))
        # Like the noise, they would fall to a quarter.
        assert large.loss < 0.5 * small.loss, rule


def test_no_k_is_better_than_the_best(known):
    _, _, losses = known
    best = {(x.tokens, x.signal): x for x in losses if x.rule == _known_ideal.BEST}
    for x in losses:
        assert 1 <= x.k <= CONFIG.n
        assert 0 < x.loss <= x.highest
        at_best = best[x.tokens, x.signal].loss
        if x.rule == _known_ideal.ORACLE:
            assert x.loss <= at_best
        # Other weights may be better than any k, and so may directions of its own.
        elif x.rule not in (_known_ideal.WEIGHTED, _known_ideal.DENOISED):
            assert x.loss >= at_best * (1 - 1e-9)


def test_direct_counts_are_those_of_the_library(tmp_path):
    model = jaxmeta.text.latent_model(20, rank=2, strength=0.5, seed=0)
    text = jaxmeta.text.sample_tokens(model, tokens=2000, documents=10, seed=1)
    jaxmeta.text.write_corpus(tmp_path / "text", model, text)
    corpus = jaxmeta.Corpus(tmp_path / "text", lines_are_documents=True)
    vocabulary = jaxmeta.text.given_vocabulary(model.words)
    counts = jaxmeta.text.count_windows(corpus, vocabulary, window=3)
    direct = known_ideal.count_directly(text, n=20, window=3)
    np.testing.assert_array_equal(direct, jaxmeta.text.symmetric_window(counts.whole).toarray())
