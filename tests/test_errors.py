"""Bad calls fail at once, and say which argument, what came and what to do.

Under the import hook of jaxtyping the annotations object first, in words that are not ours.
"""

import jax
import jax.numpy as jnp
import pytest

import jaxmeta
from jaxmeta import Spectrum


@pytest.fixture(autouse=True)
def _our_words(hooked):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")


E, F = jnp.ones((6, 3)), jnp.ones((5, 3))
MU = jnp.array([3.0, 2.0, 1.0])
SPECTRUM = Spectrum(jnp.eye(6)[:, :3], MU)
OTHER_WORDS = Spectrum(jnp.eye(5)[:, :3], MU)
MISMATCHED = Spectrum(jnp.eye(6)[:, :2], MU)
INTEGERS, HALF = jnp.ones((6, 3), jnp.int32), jnp.ones((6, 3), jnp.bfloat16)


def bound(ideal=SPECTRUM, sources=(SPECTRUM,), weights=None, alpha=0.5, source_alphas=None):
    return jaxmeta.bound_terms(ideal, sources, weights, alpha=alpha, source_alphas=source_alphas)


def order(sources):
    return jaxmeta.best_order(SPECTRUM, sources, alpha=0.5)


def weigh(rule, ideal=MU, values=(MU,), alpha=0.5, source_alphas=None):
    return rule(ideal, values, alpha=alpha, source_alphas=source_alphas)


SW, DW = jaxmeta.source_weights, jaxmeta.dimension_weights

# A call, the type of the error, and what its message must say: argument, what came, what to do.
TABLE = {
    # Wrong rank.
    "pip_loss of a vector": (
        lambda: jaxmeta.pip_loss(MU, E),
        ValueError,
        ("e: got an array of shape (3,)", "a matrix", "reshape it, or use jax.vmap"),
    ),
    "pip_loss of a batch": (
        lambda: jaxmeta.pip_loss(E, E[None]),
        ValueError,
        ("f: got an array of shape (1, 6, 3)", "a matrix", "jax.vmap over a batch"),
    ),
    "pip_matrix of a vector": (
        lambda: jaxmeta.pip_matrix(MU),
        ValueError,
        ("e: got an array of shape (3,)", "a matrix", "reshape it"),
    ),
    "decompose of a vector": (
        lambda: jaxmeta.decompose(MU),
        ValueError,
        ("signal: got an array of shape (3,)", "a matrix", "reshape it"),
    ),
    "blocks of a matrix": (
        lambda: jaxmeta.blocks(E, sizes=(1, 2)),
        ValueError,
        ("values: got an array of shape (6, 3)", "a vector", "reshape it"),
    ),
    "lemma1 of a vector": (
        lambda: jaxmeta.lemma1(E, MU),
        ValueError,
        ("y: got an array of shape (3,)", "a matrix", "reshape it"),
    ),
    "a source that is a vector": (
        lambda: jaxmeta.concatenate((E, MU)),
        ValueError,
        ("sources[1]: got an array of shape (3,)", "a matrix", "reshape it"),
    ),
    "values that are a matrix": (
        lambda: weigh(SW, values=(MU, E)),
        ValueError,
        ("source_values[1]: got an array of shape (6, 3)", "a vector", "reshape it"),
    ),
    "an ideal that is a matrix": (
        lambda: weigh(DW, ideal=E),
        ValueError,
        ("ideal_values: got an array of shape (6, 3)", "a vector", "reshape it"),
    ),
    "weights that are a matrix": (
        lambda: jaxmeta.sum_to_one(E),
        ValueError,
        ("weights: got an array of shape (6, 3)", "a vector", "reshape it"),
    ),
    "an empty array": (
        lambda: jaxmeta.pip_loss(E, jnp.zeros((6, 0))),
        ValueError,
        ("f: got an array of shape (6, 0)", "at least one entry", "drop empty arrays"),
    ),
    # Different numbers of words.
    "pip_loss of different words": (
        lambda: jaxmeta.pip_loss(E, F),
        ValueError,
        ("e and f", "6 rows in e", "5 rows in f", "align the vocabularies"),
    ),
    "procrustes of different words": (
        lambda: jaxmeta.procrustes(E, F),
        ValueError,
        ("f and e", "6 rows in f", "5 rows in e", "align the vocabularies"),
    ),
    "principal_sines of different words": (
        lambda: jaxmeta.principal_sines(E, F),
        ValueError,
        ("x and y", "6 rows in x", "5 rows in y", "align the vocabularies"),
    ),
    "sources of different words": (
        lambda: jaxmeta.concatenate((E, E, F)),
        ValueError,
        ("sources[0] and sources[2]", "6 rows", "5 rows", "align the vocabularies"),
    ),
    "a bound of different words": (
        lambda: bound(sources=(SPECTRUM, OTHER_WORDS)),
        ValueError,
        ("ideal.vectors and sources[1].vectors", "6 rows", "5 rows", "align the vocabularies"),
    ),
    "lemma1 of different dimensions": (
        lambda: jaxmeta.lemma1(E, E[:, :2]),
        ValueError,
        ("x and y", "(6, 3) and (6, 2)", "the same", "principal_sines"),
    ),
    # Weights and exponents.
    "too few weights": (
        lambda: jaxmeta.concatenate((E, E), (1.0,)),
        ValueError,
        ("weights: got 1 entries", "2, one per source", "pass one per source"),
    ),
    "too many weights": (
        lambda: bound(weights=(1.0, 1.0)),
        ValueError,
        ("weights: got 2 entries", "1, one per source", "pass one per source"),
    ),
    "too few weights in an array": (
        lambda: jaxmeta.concatenate((E, E), jnp.ones(1)),
        ValueError,
        ("weights: got 1 entries", "2, one per source", "pass one per source"),
    ),
    "weights of another length": (
        lambda: jaxmeta.concatenate((E, E), (1.0, jnp.ones(2))),
        ValueError,
        ("weights[1]: got shape (2,)", "() or (3,)", "a scalar or one weight per dimension"),
    ),
    "weights of another length in a bound": (
        lambda: bound(weights=(jnp.ones(4),)),
        ValueError,
        ("weights[0]: got shape (4,)", "() or (3,)", "a scalar or one weight per dimension"),
    ),
    "one number for weights": (
        lambda: jaxmeta.concatenate((E, E), 2.0),
        ValueError,
        ("weights: got a scalar", "2 entries, one per source", "pass a tuple"),
    ),
    "alpha that is a vector": (
        lambda: jaxmeta.embed(SPECTRUM, k=2, alpha=MU),
        ValueError,
        ("alpha: got an array of shape (3,)", "one number", "jax.vmap to try several"),
    ),
    "alpha of a bound that is a vector": (
        lambda: bound(alpha=MU),
        ValueError,
        ("alpha: got an array of shape (3,)", "one number", "jax.vmap to try several"),
    ),
    "alpha of spectrum_of that is a vector": (
        lambda: jaxmeta.spectrum_of(E, alpha=MU),
        ValueError,
        ("alpha: got an array of shape (3,)", "one number", "jax.vmap to try several"),
    ),
    "alpha of weights that is a vector": (
        lambda: weigh(SW, alpha=MU),
        ValueError,
        ("alpha: got an array of shape (3,)", "one number", "jax.vmap to try several"),
    ),
    "alpha that is a list": (
        lambda: jaxmeta.embed(SPECTRUM, k=2, alpha=[0.5]),
        TypeError,
        ("alpha: got a list", "one number", "pass a float"),
    ),
    "too many source_alphas": (
        lambda: bound(source_alphas=(0.5, 0.5)),
        ValueError,
        ("source_alphas: got 2 entries", "1, one per source", "pass one per source"),
    ),
    "one number for source_alphas": (
        lambda: weigh(DW, source_alphas=0.5),
        ValueError,
        ("source_alphas: got a scalar", "1 entries, one per source", "pass a tuple"),
    ),
    "source_alphas that are vectors": (
        lambda: weigh(DW, source_alphas=(MU,)),
        ValueError,
        ("source_alphas[0]: got shape (3,)", "expected ()", "pass a scalar"),
    ),
    "too many ideals": (
        lambda: weigh(SW, ideal=(MU, MU)),
        ValueError,
        ("ideal_values: got 2 entries", "1, one per source", "pass one per source"),
    ),
    # Sizes.
    "k above the spectrum": (
        lambda: jaxmeta.embed(SPECTRUM, k=4, alpha=0.5),
        ValueError,
        ("k: got 4", "1 to 3", "the spectrum has 3"),
    ),
    "k of zero": (
        lambda: jaxmeta.embed(SPECTRUM, k=0, alpha=0.5),
        ValueError,
        ("k: got 0", "1 to 3", "the spectrum has 3"),
    ),
    "k that is a float": (
        lambda: jaxmeta.embed(SPECTRUM, k=2.0, alpha=0.5),
        TypeError,
        ("k: got a float", "an int", "pass a Python int"),
    ),
    "k that is a bool": (
        lambda: jaxmeta.embed(SPECTRUM, k=True, alpha=0.5),
        TypeError,
        ("k: got a bool", "an int", "pass a Python int"),
    ),
    "rank above the signal": (
        lambda: jaxmeta.decompose(E, rank=4, symmetric=False),
        ValueError,
        ("rank: got 4", "1 to 3", "signal has 3"),
    ),
    "blocks of size zero": (
        lambda: jaxmeta.blocks(MU, sizes=(2, 0)),
        ValueError,
        ("sizes[1]: got 0",),
    ),
    "no blocks": (
        lambda: jaxmeta.blocks(MU, sizes=()),
        ValueError,
        ("sizes: got",),
    ),
    # Sources.
    "no sources": (
        lambda: jaxmeta.concatenate(()),
        ValueError,
        ("sources: got no source", "a tuple with one array per source", "pass at least one"),
    ),
    "no sources in a bound": (
        lambda: bound(sources=()),
        ValueError,
        ("sources: got no source", "one Spectrum per source", "pass at least one"),
    ),
    "no values": (
        lambda: weigh(SW, values=()),
        ValueError,
        ("source_values: got no source", "one array per source", "pass at least one"),
    ),
    "one array for sources": (
        lambda: jaxmeta.concatenate(E),
        TypeError,
        ("sources: got an array of shape (6, 3)", "a tuple", "in a tuple: (source,)"),
    ),
    "one array for values": (
        lambda: weigh(DW, values=MU),
        TypeError,
        ("source_values: got an array of shape (3,)", "a tuple", "in a tuple: (source,)"),
    ),
    "one spectrum for sources": (
        lambda: bound(sources=SPECTRUM),
        TypeError,
        ("sources: got a Spectrum", "a tuple", "in a tuple: (source,)"),
    ),
    "one spectrum for sources of best_order": (
        lambda: order(SPECTRUM),
        TypeError,
        ("sources: got a Spectrum", "a tuple", "in a tuple: (source,)"),
    ),
    "embeddings for spectra": (
        lambda: bound(sources=(SPECTRUM, E)),
        TypeError,
        ("sources[1]: got an array of shape (6, 3)", "a Spectrum", "see spectrum_of"),
    ),
    "an embedding for the ideal": (
        lambda: bound(ideal=E),
        TypeError,
        ("ideal: got", "a Spectrum", "see spectrum_of"),
    ),
    "an embedding to embed": (
        lambda: jaxmeta.embed(E, k=2, alpha=0.5),
        TypeError,
        ("spectrum: got", "a Spectrum", "see spectrum_of"),
    ),
    "nine sources to order": (
        lambda: order((SPECTRUM,) * 9),
        ValueError,
        ("the number of sources: got 9", "1 to 8", "an exhaustive search has 8"),
    ),
    # Types.
    "integers": (
        lambda: jaxmeta.pip_loss(E, INTEGERS),
        TypeError,
        ("f: got dtype int32", "float32 or float64", ".astype(jnp.float32)"),
    ),
    "half precision": (
        lambda: jaxmeta.concatenate((E, HALF)),
        TypeError,
        ("sources[1]: got dtype bfloat16", "float32 or float64", ".astype(jnp.float32)"),
    ),
    "integers for a signal": (
        lambda: jaxmeta.decompose(jnp.eye(3, dtype=jnp.int32)),
        TypeError,
        ("signal: got dtype int32", "float32 or float64", ".astype(jnp.float32)"),
    ),
    "integers for values": (
        lambda: weigh(SW, ideal=jnp.arange(3)),
        TypeError,
        ("ideal_values: got dtype int", "float32 or float64", ".astype(jnp.float32)"),
    ),
    "lists for an embedding": (
        lambda: jaxmeta.pip_loss([[1.0], [2.0]], E),
        TypeError,
        ("e: got a list", "a matrix", "jnp.asarray"),
    ),
    "lists for values": (
        lambda: jaxmeta.blocks([1.0, 2.0], sizes=(1, 1)),
        TypeError,
        ("values: got a list", "a vector", "jnp.asarray"),
    ),
    "lists for sources": (
        lambda: jaxmeta.concatenate(([[1.0], [2.0]],)),
        TypeError,
        ("sources[0]: got a list", "a matrix", "jnp.asarray"),
    ),
    "a number for sources": (
        lambda: jaxmeta.concatenate(1.0),
        TypeError,
        ("sources: got", "a tuple with one array per source", "in a tuple"),
    ),
    # Signals and spectra.
    "a signal that is not square": (
        lambda: jaxmeta.decompose(E),
        ValueError,
        ("signal: got shape (6, 3)", "square", "symmetric=False"),
    ),
    "a spectrum of different lengths": (
        lambda: jaxmeta.embed(MISMATCHED, k=2, alpha=0.5),
        ValueError,
        ("spectrum: got 2 vectors and 3 values", "as many", "cut both to the same rank"),
    ),
    "an ideal of different lengths": (
        lambda: bound(ideal=MISMATCHED),
        ValueError,
        ("ideal: got 2 vectors and 3 values", "as many", "cut both to the same rank"),
    ),
    "a source of different lengths": (
        lambda: bound(sources=(SPECTRUM, MISMATCHED)),
        ValueError,
        ("sources[1]: got 2 vectors and 3 values", "as many", "cut both to the same rank"),
    ),
    "more vectors than words": (
        lambda: bound(ideal=Spectrum(jnp.eye(2, 3), MU)),
        ValueError,
        ("ideal: got 3 vectors of 2 words", "at most 2", "one column per direction"),
    ),
    "validate of another type": (
        lambda: jaxmeta.validate((jnp.eye(3), MU)),
        TypeError,
        ("spectrum: got a tuple", "a Spectrum", "see spectrum_of"),
    ),
}


@pytest.mark.parametrize(("call", "error", "words"), TABLE.values(), ids=TABLE)
def test_bad_calls(call, error, words):
    with pytest.raises(error) as raised:
        call()
    message = str(raised.value)
    for part in words:
        assert part in message, message
    assert "expected" in message
    assert message.endswith(".")


def test_errors_are_raised_while_tracing():
    """So that they cost nothing per call, and show before anything is compiled."""
    with pytest.raises(ValueError, match="align the vocabularies"):
        jax.eval_shape(jaxmeta.pip_loss, E, F)
