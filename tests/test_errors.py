"""Bad calls fail at once, and say which argument, what came and what to do.

Under the import hook of jaxtyping the annotations object first, in words that are not ours.
"""

import jax
import jax.numpy as jnp
import pytest
import scipy.sparse

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
    return jaxmeta.bounds.best_order(SPECTRUM, sources, alpha=0.5)


def weigh(rule, ideal=MU, values=(MU,), alpha=0.5, source_alphas=None):
    return rule(ideal, values, alpha=alpha, source_alphas=source_alphas)


SW, DW = jaxmeta.source_weights, jaxmeta.dimension_weights
NAN, WORSE = float("nan"), jnp.array([1.0, 2.0, 0.5])  # the second is out of order
SPARSE = scipy.sparse.csr_array(jnp.eye(6, 3))


def spiked(function, values=MU, sigma=0.1, n=6, **settings):
    return function(values, sigma=sigma, n=n, **settings)


def simulate(values=MU, sigma=0.1, n=6, alpha=0.5, draws=2, depth=1):
    return jaxmeta.dimension.simulate_curve(
        values, sigma=sigma, n=n, alpha=alpha, key=jax.random.key(0), draws=draws, depth=depth
    )


def align(values=(MU, MU), sigmas=(0.1, 0.1), n=6, alpha=0.5):
    return jaxmeta.aligned_weights(values, sigmas=sigmas, n=n, alpha=alpha)


def released(values=(MU, MU), sizes=(1, 2), sigmas=(0.1, 0.1), n=6, alpha=0.5):
    return jaxmeta.released.released_source_weights(
        values, sizes=sizes, sigmas=sigmas, n=n, alpha=alpha
    )


def complete(values=MU, n=6, trace=1.0, square_norm=20.0):
    return jaxmeta.shrinkage.complete_spectrum(values, n=n, trace=trace, square_norm=square_norm)


def strengths(values=MU, sigma=0.1, alpha=0.5, size=4):
    return jaxmeta.ideal_strengths(values, sigma=sigma, alpha=alpha, size=size)


def rectangular(values=MU, sigma=0.1, n=3, m=5):
    return jaxmeta.shrinkage.rotation_invariant_rectangular(values, sigma=sigma, n=n, m=m)


# Functions of leading values, the noise and the number of words; True if they take an exponent.
SPIKED = {
    jaxmeta.usvt: False,
    jaxmeta.noise.usvt_rank: False,
    jaxmeta.debias: False,
    jaxmeta.noise.spiked_overlap: False,
    jaxmeta.noise.spiked_strengths: True,
    jaxmeta.select_dimension: True,
    jaxmeta.paper_dimension: True,
    jaxmeta.shrinkage_weights: True,
    jaxmeta.released.released_dimension_weights: True,
}
SORTED = (
    jaxmeta.select_dimension,
    jaxmeta.paper_dimension,
    jaxmeta.shrinkage_weights,
    jaxmeta.released.released_dimension_weights,
)


def of_spiked(*, values=MU, sigma=0.1, n=6, alpha=0.5, among=tuple(SPIKED)):
    """A call of each of these functions, by its name."""
    return {
        function.__name__: lambda function=function: spiked(
            function, values, sigma, n, **({"alpha": alpha} if SPIKED[function] else {})
        )
        for function in among
    }


NOT_NEGATIVE, ABOVE_ZERO = "a number that is not negative", "a number above 0"
ESTIMATE = "estimate it with noise_std"
SORT = ("descending numbers that are not negative", "sort by magnitude, as decompose does")

COUNTS, SPARSE_COUNTS = jnp.ones((3, 3)), scipy.sparse.csr_array(jnp.eye(3))
PMI_ITSELF = "pass the number of negative samples, or 1 for the PMI itself"

# A call, the type of the error, and what its message must say: argument, what came, what to do.
TABLE = {
    # Signals of counts.
    **{
        f"{function.__name__} of {what}": (lambda f=function, c=counts: f(c), error, words)
        for function in (jaxmeta.log_count, jaxmeta.ppmi)
        for what, counts, error, words in (
            ("a vector", MU, ValueError, ("counts: got an array of shape (3,)", "a matrix")),
            ("a list", [[1.0]], TypeError, ("counts: got a list", "jnp.asarray")),
            ("truth values", COUNTS > 0, TypeError, ("counts: got dtype bool", "float32")),
            ("half precision", HALF, TypeError, ("counts: got dtype bfloat16", "float32")),
            ("nothing", COUNTS[:0], ValueError, ("counts: got", "at least one entry")),
            (
                "a negative sparse count",
                -SPARSE_COUNTS,
                ValueError,
                ("counts[0, 0]: got -1.0", "not negative", "not a signal"),
            ),
            (
                "a sparse count that is NaN",
                NAN * SPARSE_COUNTS,
                ValueError,
                ("counts[0, 0]: got nan", "a finite number", "pass counts of co-occurrences"),
            ),
        )
    },
    **{
        f"{function.__name__} of {kind} counts, {what} shift": (
            lambda f=function, c=counts, s=shift: f(c, shift=s),
            ValueError,
            (f"shift: got {shift}", ABOVE_ZERO, PMI_ITSELF),
        )
        for function in (jaxmeta.shifted_pmi, jaxmeta.ppmi)
        for kind, counts in (("dense", COUNTS), ("sparse", SPARSE_COUNTS))
        for what, shift in (("no", 0.0), ("negative", -3.0), ("NaN", NAN))
    },
    "several shifts": (
        lambda: jaxmeta.shifted_pmi(COUNTS, shift=MU),
        ValueError,
        ("shift: got an array of shape (3,)", "one number", "jax.vmap to try several"),
    ),
    "a list of shifts": (
        lambda: jaxmeta.ppmi(COUNTS, shift=[3.0]),
        TypeError,
        ("shift: got a list", "one number", "pass a float"),
    ),
    "a value for unobserved pairs of sparse counts": (
        lambda: jaxmeta.shifted_pmi(SPARSE_COUNTS, shift=3.0, unobserved=-1.0),
        ValueError,
        ("unobserved: got -1.0", "expected 0 with sparse counts", "counts.toarray()"),
    ),
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
        lambda: jaxmeta.pip.pip_matrix(MU),
        ValueError,
        ("e: got an array of shape (3,)", "a matrix", "reshape it"),
    ),
    "decompose of a vector": (
        lambda: jaxmeta.decompose(MU),
        ValueError,
        ("signal: got an array of shape (3,)", "a matrix", "reshape it"),
    ),
    "blocks of a matrix": (
        lambda: jaxmeta.spectral.split_by_source(E, sizes=(1, 2)),
        ValueError,
        ("values: got an array of shape (6, 3)", "a vector", "reshape it"),
    ),
    "lemma1 of a vector": (
        lambda: jaxmeta.bounds.lemma1(E, MU),
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
        lambda: jaxmeta.weights.sum_to_one(E),
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
        lambda: jaxmeta.linalg.principal_sines(E, F),
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
        lambda: jaxmeta.bounds.lemma1(E, E[:, :2]),
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
        lambda: jaxmeta.spectral.split_by_source(MU, sizes=(2, 0)),
        ValueError,
        ("sizes[1]: got 0",),
    ),
    "no blocks": (
        lambda: jaxmeta.spectral.split_by_source(MU, sizes=()),
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
        lambda: jaxmeta.spectral.split_by_source([1.0, 2.0], sizes=(1, 1)),
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


# The same for noise, dimensions and directions.
NOISE_TABLE = {
    **{
        f"{name} of {what}": (call, error, words)
        for what, settings, error, words in (
            ("negative noise", {"sigma": -0.5}, ValueError, ("sigma: got -0.5", NOT_NEGATIVE)),
            (
                "negative noise in an array",
                {"sigma": jnp.array(-0.5)},
                ValueError,
                ("sigma: got -0.5", NOT_NEGATIVE, ESTIMATE),
            ),
            ("NaN noise", {"sigma": NAN}, ValueError, ("sigma: got nan", NOT_NEGATIVE, ESTIMATE)),
            ("a vector of noise", {"sigma": MU}, ValueError, ("sigma: got", "one number", "vmap")),
            ("a list of noise", {"sigma": [0.1]}, TypeError, ("sigma: got a list", "a float")),
            ("too few words", {"n": 2}, ValueError, ("n: got 2", "at least 3")),
            ("half a word", {"n": 6.5}, TypeError, ("n: got a float", "an int")),
            ("a matrix", {"values": E}, ValueError, ("values: got", "(6, 3)", "a vector")),
            ("integers", {"values": jnp.arange(3, 0, -1)}, TypeError, ("values: got dtype int",)),
            ("a list", {"values": [3.0, 2.0]}, TypeError, ("values: got a list", "jnp.asarray")),
        )
        for name, call in of_spiked(**settings).items()
    },
    **{
        f"{name} of {what}": (call, ValueError, (f"values[{place}]: got {got}", *SORT))
        for what, values, place, got in (
            ("unsorted values", WORSE, 1, "2.0"),
            ("negative values", jnp.array([2.0, 1.0, -1.0]), 2, "-1.0"),
            ("NaN values", jnp.array([2.0, NAN, 1.0]), 1, "nan"),
        )
        for name, call in of_spiked(values=values, among=SORTED).items()
    },
    **{
        f"{name} at several exponents": (call, ValueError, ("alpha: got", "(3,)", "one number"))
        for name, call in of_spiked(
            alpha=MU, among=tuple(f for f, exponent in SPIKED.items() if exponent)
        ).items()
    },
    "debias of a narrow signal": (
        lambda: jaxmeta.debias(MU, sigma=0.1, n=6, m=2),
        ValueError,
        ("m: got 2", "at least 3"),
    ),
    # Two halves.
    **{
        f"{function.__name__} of {what}": (lambda f=function, h=halves: f(*h), error, words)
        for function in (jaxmeta.noise_std, jaxmeta.released.released_noise_std)
        for what, halves, error, words in (
            (
                "halves of different shape",
                (E, F),
                ValueError,
                ("first_half and second_half: got shapes (6, 3) and (5, 3)", "the same"),
            ),
            (
                "sparse halves of different shape",
                (SPARSE, SPARSE[:5]),
                ValueError,
                ("got shapes (6, 3) and (5, 3)", "count both halves over one vocabulary"),
            ),
            (
                "a sparse and a dense half",
                (SPARSE, E),
                TypeError,
                ("got a sparse and a dense matrix", "two of a kind", "convert one of them"),
            ),
            (
                "a dense and a sparse half",
                (E, SPARSE),
                TypeError,
                ("got a sparse and a dense matrix", "two of a kind", "convert one of them"),
            ),
            ("integers", (INTEGERS, INTEGERS), TypeError, ("first_half: got dtype int32",)),
            ("vectors", (MU, MU), ValueError, ("first_half: got an array", "a matrix")),
            ("lists", ([[1.0]], [[2.0]]), TypeError, ("first_half: got a list", "jnp.asarray")),
        )
    },
    # The whole spectrum.
    **{
        f"{name} of {what} noise": (
            lambda f=function, s=sigma: f(sigma=s),
            ValueError,
            (f"sigma: got {sigma}", ABOVE_ZERO, ESTIMATE),
        )
        for name, function in (
            ("rotation_invariant", lambda sigma: jaxmeta.rotation_invariant(MU, sigma=sigma)),
            ("rotation_invariant_rectangular", rectangular),
            ("ideal_strengths", strengths),
        )
        for what, sigma in (("negative", -1.0), ("no", 0.0), ("NaN", NAN))
    },
    "rotation_invariant of a matrix": (
        lambda: jaxmeta.rotation_invariant(E, sigma=0.1),
        ValueError,
        ("eigenvalues: got an array of shape (6, 3)", "a vector"),
    ),
    "a part of the singular values": (
        lambda: rectangular(n=4, m=5),
        ValueError,
        ("values: got 3", "all 4 singular values", "(4, 5)", "usvt or debias"),
    ),
    "ideal_strengths with one candidate": (
        lambda: strengths(size=1),
        ValueError,
        ("size: got 1", "at least 2"),
    ),
    "ideal_strengths at several exponents": (
        lambda: strengths(alpha=MU),
        ValueError,
        ("alpha: got an array of shape (3,)", "one number"),
    ),
    "effective_rank of a matrix": (
        lambda: jaxmeta.noise.effective_rank(E),
        ValueError,
        ("values: got an array of shape (6, 3)", "a vector"),
    ),
    "nothing to complete": (lambda: complete(n=3), ValueError, ("n: got 3", "at least 4")),
    "a trace that is a vector": (
        lambda: complete(trace=MU),
        ValueError,
        ("trace: got an array of shape (3,)", "one number"),
    ),
    "a square norm that is a vector": (
        lambda: complete(square_norm=MU),
        ValueError,
        ("square_norm: got an array of shape (3,)", "one number"),
    ),
    # Dimensions.
    "a curve of different words": (
        lambda: jaxmeta.pip_curve(SPECTRUM, OTHER_WORDS, alpha=0.5),
        ValueError,
        ("ideal.vectors and noisy.vectors", "6 rows", "5 rows", "align the vocabularies"),
    ),
    "a curve of embeddings": (
        lambda: jaxmeta.pip_curve(SPECTRUM, E, alpha=0.5),
        TypeError,
        ("noisy: got", "a Spectrum", "see spectrum_of"),
    ),
    "a curve at several exponents": (
        lambda: jaxmeta.pip_curve(SPECTRUM, SPECTRUM, alpha=MU),
        ValueError,
        ("alpha: got an array of shape (3,)", "one number"),
    ),
    "a dimension of too few strengths": (
        lambda: jaxmeta.best_dimension(MU, MU[:2], alpha=0.5),
        ValueError,
        ("strengths: got 2", "3, one per value", "from the same values"),
    ),
    "weights of too few strengths": (
        lambda: jaxmeta.strength_weights(MU, MU[:2], alpha=0.5),
        ValueError,
        ("strengths: got 2", "3, one per value", "from the same values"),
    ),
    "released_dimension of a matrix": (
        lambda: jaxmeta.released.released_dimension(E),
        ValueError,
        ("curve: got an array of shape (6, 3)", "a vector"),
    ),
    "a simulation of unsorted values": (
        lambda: simulate(WORSE),
        ValueError,
        ("ideal_values[1]: got 2.0", *SORT),
    ),
    "a simulation of negative noise": (
        lambda: simulate(sigma=-1.0),
        ValueError,
        ("sigma: got -1.0", NOT_NEGATIVE, ESTIMATE),
    ),
    "a simulation of NaN noise": (
        lambda: simulate(sigma=NAN),
        ValueError,
        ("sigma: got nan", NOT_NEGATIVE, ESTIMATE),
    ),
    "a simulation of too few words": (
        lambda: simulate(n=2),
        ValueError,
        ("n: got 2", "at least 3"),
    ),
    "a simulation without draws": (
        lambda: simulate(draws=0),
        ValueError,
        ("draws: got 0", "at least 2"),
    ),
    "a simulation of one draw": (
        lambda: simulate(draws=1),
        ValueError,
        ("draws: got 1", "at least 2"),
    ),
    "a simulation of half a draw": (
        lambda: simulate(draws=2.5),
        TypeError,
        ("draws: got a float", "an int"),
    ),
    "a simulation without depth": (
        lambda: simulate(depth=0),
        ValueError,
        ("depth: got 0", "at least 1"),
    ),
    # Weights of several sources.
    "aligned sources with too few sigmas": (
        lambda: align(sigmas=(0.1,)),
        ValueError,
        ("sigmas: got 1 entries", "2, one per source"),
    ),
    "an aligned source with negative noise": (
        lambda: align(sigmas=(0.1, -0.1)),
        ValueError,
        ("sigmas[1]: got -0.1", ABOVE_ZERO, ESTIMATE),
    ),
    "an aligned source with NaN noise": (
        lambda: align(sigmas=(NAN, 0.1)),
        ValueError,
        ("sigmas[0]: got nan", ABOVE_ZERO, ESTIMATE),
    ),
    "an aligned source that is unsorted": (
        lambda: align((MU, WORSE)),
        ValueError,
        ("source_values[1][1]: got 2.0", *SORT),
    ),
    "aligned sources of too few words": (
        lambda: align(n=2),
        ValueError,
        ("n: got 2", "at least 3"),
    ),
    "no aligned sources": (
        lambda: align((), ()),
        ValueError,
        ("source_values: got no source", "pass at least one"),
    ),
    "one array of aligned sources": (
        lambda: align(MU, (0.1,)),
        TypeError,
        ("source_values: got an array of shape (3,)", "in a tuple: (source,)"),
    ),
    "nine aligned sources": (
        lambda: align((MU,) * 9, (0.1,) * 9),
        ValueError,
        ("the number of sources: got 9", "1 to 8", "the search has 8"),
    ),
    "aligned sources at several exponents": (
        lambda: align(alpha=MU),
        ValueError,
        ("alpha: got an array of shape (3,)", "one number"),
    ),
    "released weights of too short a spectrum": (
        lambda: released((MU, MU[:2])),
        ValueError,
        ("source_values[1]: got 2 values", "at least 3", "pass its whole spectrum"),
    ),
    "released weights with too few sizes": (
        lambda: released(sizes=(1,)),
        ValueError,
        ("sizes: got 1 entries", "2, one per source"),
    ),
    "released weights with too many sigmas": (
        lambda: released(sigmas=(0.1,) * 3),
        ValueError,
        ("sigmas: got 3 entries", "2, one per source"),
    ),
    "released weights of size zero": (
        lambda: released(sizes=(1, 0)),
        ValueError,
        ("sizes[1]: got 0", "at least 1"),
    ),
    "released weights of negative noise": (
        lambda: released(sigmas=(0.1, -1.0)),
        ValueError,
        ("got -1.0", NOT_NEGATIVE, ESTIMATE),
    ),
    "released weights of unsorted values": (
        lambda: released((WORSE, MU)),
        ValueError,
        ("source_values[0][1]: got 2.0", *SORT),
    ),
    # Rotations and the selection of sources.
    "rotate to different words": (
        lambda: jaxmeta.combine.rotate_onto(E, F),
        ValueError,
        ("source and reference", "6 rows in source", "5 rows in reference"),
    ),
    "rotate of a vector": (
        lambda: jaxmeta.combine.rotate_onto(MU, E),
        ValueError,
        ("source: got an array of shape (3,)", "a matrix"),
    ),
    "more sources selected than there are": (
        lambda: jaxmeta.bounds.select_sources(SPECTRUM, (SPECTRUM,), count=2, alpha=0.5),
        ValueError,
        ("count: got 2", "1 to 1", "sources has 1"),
    ),
    "no sources selected": (
        lambda: jaxmeta.bounds.select_sources(SPECTRUM, (SPECTRUM,), count=0, alpha=0.5),
        ValueError,
        ("count: got 0", "1 to 1"),
    ),
    "sources of different words to select": (
        lambda: jaxmeta.bounds.select_sources(SPECTRUM, (OTHER_WORDS,), count=1, alpha=0.5),
        ValueError,
        ("ideal.vectors and sources[0].vectors", "align the vocabularies"),
    ),
}
TABLE |= NOISE_TABLE

KEY, ALL = jax.random.key(0), jnp.ones((6, 2), bool)
NEAR = jnp.zeros((6, 2), int)


def encoded(sources, **settings):
    result = jaxmeta.methods.averaged_autoencoder((E, E), key=KEY, k=2, epochs=1)
    return jaxmeta.methods.autoencoded_rows(result.parameters, sources, **settings)


# Functions of sources, each with all else that it needs; and those that let sources lack words.
OF_SOURCES = {
    "average": jaxmeta.average,
    "svd_reduce": lambda sources, **settings: jaxmeta.svd_reduce(sources, k=2, **settings),
    "rotated_average": jaxmeta.combine.rotated_average,
    "one_to_n": lambda sources: jaxmeta.methods.one_to_n(sources, k=2),
    "released_one_to_n": lambda sources: jaxmeta.released.released_one_to_n(sources, k=2, key=KEY),
    "one_to_n_plus": lambda sources, present=ALL: jaxmeta.methods.one_to_n_plus(
        sources, present, k=2
    ),
    "predict_missing": lambda sources, present=ALL: jaxmeta.files.predict_missing(sources, present),
    "reconstruction_weights": lambda sources: jaxmeta.methods.reconstruction_weights(
        sources, (NEAR, NEAR)
    ),
    "cosine_shares": jaxmeta.diagnosis.cosine_shares,
    "disagreement": jaxmeta.diagnosis.disagreement,
    "diagnose": jaxmeta.diagnose,
    "encode": encoded,
    "locally_linear": lambda sources, **settings: jaxmeta.methods.locally_linear(
        sources, k=2, neighbours=2, key=KEY, **settings
    ),
    **{
        train.__name__: lambda sources, f=train, **settings: f(sources, key=KEY, **settings)
        for train in (
            jaxmeta.methods.averaged_autoencoder,
            jaxmeta.methods.concatenated_autoencoder,
            jaxmeta.methods.decoupled_autoencoder,
        )
    },
}
WHOLE = {
    "one_to_n",
    "released_one_to_n",
    "reconstruction_weights",
    "cosine_shares",
    "disagreement",
    "diagnose",
}
WHETHER = "pass present[w, j], whether source j has word w"

# The same for ways to combine sources.
COMBINE_TABLE = {
    **{
        f"{name} of {what}": (lambda f=call, s=sources: f(s), error, words)
        for name, call in OF_SOURCES.items()
        for what, sources, error, words in (
            ("no source", (), ValueError, ("sources: got no source", "pass at least one")),
            ("one array", E, TypeError, ("sources: got an array of shape (6, 3)", "(source,)")),
            ("a list of numbers", ([[1.0]],) * 2, TypeError, ("sources[0]: got a list", "asarray")),
            ("a vector", (E, MU), ValueError, ("sources[1]: got an array of shape (3,)", "matrix")),
            ("integers", (E, INTEGERS), TypeError, ("sources[1]: got dtype int32", "float32")),
            (
                "different words",
                (E, F),
                ValueError,
                ("sources[0] and sources[1]: got 6 rows", "5 rows", "align the vocabularies"),
            ),
        )
    },
    **{
        f"{name} with {what}": (lambda f=call, p=present: f((E, E), present=p), error, words)
        for name, call in OF_SOURCES.items()
        if name not in WHOLE
        for what, present, error, words in (
            (
                "present for one source",
                ALL[:, :1],
                ValueError,
                ("present: got shape (6, 1)", "(6, 2)", WHETHER),
            ),
            ("numbers for present", E[:, :2], TypeError, ("present: got dtype float", WHETHER)),
            ("a list for present", [[True]], TypeError, ("present: got a list", WHETHER)),
        )
    },
    **{
        f"{name} in {k} dimensions": (lambda f=call, k=k: f(k), error, words)
        for name, call in (
            ("svd_reduce", lambda k: jaxmeta.svd_reduce((E, E), k=k)),
            ("one_to_n", lambda k: jaxmeta.methods.one_to_n((E, E), k=k)),
            (
                "released_one_to_n",
                lambda k: jaxmeta.released.released_one_to_n((E, E), k=k, key=KEY),
            ),
            ("one_to_n_plus", lambda k: jaxmeta.methods.one_to_n_plus((E, E), ALL, k=k)),
        )
        for k, error, words in (
            (0, ValueError, ("k: got 0", "1 to 6", "the concatenation has 6")),
            (7, ValueError, ("k: got 7", "1 to 6", "the concatenation has 6")),
            (2.0, TypeError, ("k: got a float", "an int")),
        )
    },
    "principal_axes of a vector": (
        lambda: jaxmeta.combine.principal_axes(MU),
        ValueError,
        ("source: got an array of shape (3,)", "a matrix"),
    ),
    "nearest_neighbours of a vector": (
        lambda: jaxmeta.methods.nearest_neighbours(MU, neighbours=1),
        ValueError,
        ("source: got an array of shape (3,)", "a matrix"),
    ),
    "nearest_neighbours with present of each source": (
        lambda: jaxmeta.methods.nearest_neighbours(E, neighbours=1, present=ALL),
        ValueError,
        ("present: got shape (6, 2)", "(6,)", "pass present[w], whether the source has word w"),
    ),
    "cosine_shares with too few weights": (
        lambda: jaxmeta.diagnosis.cosine_shares((E, E), (1.0,)),
        ValueError,
        ("weights: got 1 entries", "2, one per source"),
    ),
    "svd_reduce with too few weights": (
        lambda: jaxmeta.svd_reduce((E, E), k=2, weights=(1.0,)),
        ValueError,
        ("weights: got 1 entries", "2, one per source"),
    ),
    "align of arrays": (
        lambda: jaxmeta.align((E, E)),
        TypeError,
        ("sources[0]: got a", "a Vectors", "read_vectors"),
    ),
}
TABLE |= COMBINE_TABLE


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
