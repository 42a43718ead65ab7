"""Errors that one function has of its own; `test_checks` has the wording that they share.

That every function raises for arrays of wrong rank, dtype, length or number of words is among the
promises of the API table. Here is what needs values, or more than one argument.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from helpers import cast

import jaxmeta
from jaxmeta import Spectrum, dimension, noise, released, shrinkage
from jaxmeta.combine import rotate_onto

pytestmark = pytest.mark.one_leg

# NumPy's, as all workers import this, and JAX would compile what makes them.
E, F = cast((np.ones((6, 3)), np.ones((5, 3))))
MU, WORSE = cast((np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 0.5])))  # the second in disorder
SPECTRUM = Spectrum(cast(np.eye(6, 3)), MU)
OTHER_WORDS = Spectrum(cast(np.eye(5, 3)), MU)
MISMATCHED = Spectrum(cast(np.eye(6, 2)), MU)
SPARSE, COUNTS = (scipy.sparse.csr_array(np.eye(n, 3, dtype=np.float32)) for n in (6, 3))
KEY, ALL, NAN = jax.random.key(0), jnp.asarray(np.ones((6, 2), bool)), float("nan")
NOISE = {"sigma": 0.1, "n": 6}
SPIKED = NOISE | {"alpha": 0.5}
ALIGNED = {"sigmas": (0.1, 0.1), "n": 6, "alpha": 0.5}
RELEASED = ALIGNED | {"sizes": (1, 2)}
DRAWS = SPIKED | {"key": KEY, "draws": 2}


def bound(ideal=SPECTRUM, sources=(SPECTRUM,), **settings):
    return jaxmeta.bound_terms(ideal, sources, **{"alpha": 0.5} | settings)


def encoded(sources):
    trained = jaxmeta.methods.averaged_autoencoder((E, E), key=KEY, k=2, epochs=1)
    return jaxmeta.methods.autoencoded_rows(trained.parameters, sources)


# A call and parts of its message.
BAD = {
    "some of the values of the bulk": (
        lambda: noise.bulk_noise_std(MU, n=5), "values: got 3 of them", "split the corpus"),
    "a signal that is not square": (
        lambda: jaxmeta.decompose(E), "signal: got shape (6, 3)", "square", "symmetric=False"),
    "a rank above the signal": (
        lambda: jaxmeta.decompose(E, rank=4, symmetric=False), "rank: got 4", "signal has 3"),
    "a rank above a sparse signal": (
        lambda: jaxmeta.decompose(SPARSE, rank=4, symmetric=False), "rank: got 4", "signal has 3"),
    "a spectrum of different lengths": (
        lambda: jaxmeta.embed(MISMATCHED, k=2, alpha=0.5),
        "spectrum: got 2 vectors and 3 values", "cut both to the same rank"),
    "a source of different lengths": (
        lambda: bound(sources=(SPECTRUM, MISMATCHED)), "sources[1]: got 2 vectors and 3 values"),
    "more vectors than words": (
        lambda: bound(Spectrum(jnp.eye(2, 3), MU)), "ideal: got 3 vectors of 2 words"),
    "an embedding for the ideal": (lambda: bound(E), "ideal: got a", "see spectrum_of"),
    "an embedding to embed": (
        lambda: jaxmeta.embed(E, k=2, alpha=0.5), "spectrum: got a", "see spectrum_of"),
    "validate of another type": (
        lambda: jaxmeta.validate((jnp.eye(3), MU)), "spectrum: got a tuple", "see spectrum_of"),
    "k above the spectrum": (
        lambda: jaxmeta.embed(SPECTRUM, k=4, alpha=0.5), "k: got 4", "the spectrum has 3"),
    "a bound of different words": (
        lambda: bound(sources=(SPECTRUM, OTHER_WORDS)),
        "ideal.vectors and sources[1].vectors", "align the vocabularies"),
    "too many weights": (lambda: bound(weights=(1.0, 1.0)), "weights: got 2 entries"),
    "too many source_alphas": (
        lambda: bound(source_alphas=(0.5, 0.5)), "source_alphas: got 2 entries"),
    "lemma1 of different dimensions": (
        lambda: jaxmeta.bounds.lemma1(E, E[:, :2]), "(6, 3) and (6, 2)", "principal_sines"),
    "nine sources to order": (
        lambda: jaxmeta.bounds.best_order(SPECTRUM, (SPECTRUM,) * 9, alpha=0.5),
        "the number of sources: got 9", "an exhaustive search has 8"),
    "more sources selected than there are": (
        lambda: jaxmeta.bounds.select_sources(SPECTRUM, (SPECTRUM,), count=2, alpha=0.5),
        "count: got 2", "sources has 1"),
    "a curve of different words": (
        lambda: jaxmeta.pip_curve(SPECTRUM, OTHER_WORDS, alpha=0.5),
        "ideal.vectors and noisy.vectors", "align the vocabularies"),
    "rotation onto different words": (lambda: rotate_onto(E, F), "source and reference"),
    "too few weights": (lambda: jaxmeta.concatenate((E, E), (1.0,)), "weights: got 1 entries"),
    "one number for weights": (lambda: jaxmeta.concatenate((E, E), 2.0), "weights: got a scalar"),
    "weights of another length": (
        lambda: jaxmeta.concatenate((E, E), (1.0, jnp.ones(2))), "weights[1]: got shape (2,)"),
    "too many ideals": (
        lambda: jaxmeta.source_weights((MU, MU), (MU,), alpha=0.5), "ideal_values: got 2 entries"),
    # Noise and dimensions.
    **{
        f"{f.__name__} of negative noise": (
            lambda f=f, s=s: f(MU, **s | {"sigma": -0.5}), "sigma: got -0.5", "noise_std")
        for f, s in (
            (jaxmeta.usvt, NOISE), (noise.usvt_rank, NOISE), (jaxmeta.debias, NOISE),
            (noise.spiked_overlap, NOISE), (noise.spiked_strengths, SPIKED),
            (jaxmeta.select_dimension, SPIKED), (jaxmeta.paper_dimension, SPIKED),
            (jaxmeta.shrinkage_weights, SPIKED), (released.released_dimension_weights, SPIKED),
            (dimension.paper_curve, SPIKED), (dimension.spiked_paper_dimension, SPIKED),
            (dimension.simulate_curve, DRAWS),
            (jaxmeta.rotation_invariant, {}), (shrinkage.rie_strengths, {}),
            (jaxmeta.ideal_strengths, {"alpha": 0.5}),
            (shrinkage.rotation_invariant_rectangular, {"n": 3, "m": 5}),
        )
    },
    **{
        f"{f.__name__} of no noise": (lambda f=f, s=s: f(MU, sigma=0.0, **s), "sigma: got 0.0")
        for f, s in (
            (jaxmeta.rotation_invariant, {}), (shrinkage.rie_strengths, {}),
            (jaxmeta.ideal_strengths, {"alpha": 0.5}),
            (shrinkage.rotation_invariant_rectangular, {"n": 3, "m": 5}),
        )
    },
    **{
        f"{f.__name__} of {what} values": (lambda f=f, s=s, v=values: f(v, **s), f"[{place}]: got")
        for f, s in (
            (jaxmeta.select_dimension, SPIKED), (jaxmeta.paper_dimension, SPIKED),
            (dimension.paper_curve, SPIKED), (dimension.spiked_paper_dimension, SPIKED),
            (jaxmeta.shrinkage_weights, SPIKED),
            (released.released_dimension_weights, SPIKED), (dimension.simulate_curve, DRAWS),
        )
        for what, values, place in (
            ("unsorted", WORSE, 1), ("negative", MU - 2, 2), ("NaN", MU.at[1].set(NAN), 1))
    },
    **{
        f"{f.__name__} of too few words": (lambda f=f, s=s: f(MU, **s | {"n": 2}), "n: got 2")
        for f, s in (
            (jaxmeta.usvt, NOISE), (jaxmeta.debias, NOISE), (noise.spiked_overlap, NOISE),
            (jaxmeta.select_dimension, SPIKED), (jaxmeta.shrinkage_weights, SPIKED),
            (dimension.simulate_curve, DRAWS),
        )
    },
    "half a word": (lambda: jaxmeta.usvt(MU, sigma=0.1, n=6.5), "n: got a float"),
    "a narrow signal": (lambda: jaxmeta.debias(MU, m=2, **NOISE), "m: got 2", "at least 3"),
    **{
        f"{f.__name__} of {what}": (lambda f=f, h=halves: f(*h), *words)
        for f in (jaxmeta.noise_std, released.released_noise_std)
        for what, halves, words in (
            ("halves of different shape", (E, F), ("shapes (6, 3) and (5, 3)", "one vocabulary")),
            ("sparse ones", (SPARSE, SPARSE[:5]), ("shapes (6, 3) and (5, 3)",)),
            ("two kinds", (SPARSE, E), ("a sparse and a dense matrix", "convert one of them")),
            ("the other way", (E, SPARSE), ("a sparse and a dense matrix", "two of a kind")),
        )
    },
    "a part of the singular values": (
        lambda: shrinkage.rotation_invariant_rectangular(MU, sigma=0.1, n=4, m=5),
        "values: got 3", "all 4 singular values", "(4, 5)", "usvt or debias"),
    "one candidate": (
        lambda: jaxmeta.ideal_strengths(MU - 2, sigma=0.1, alpha=0.5, size=1), "size: got 1"),
    "nothing to complete": (
        lambda: shrinkage.complete_spectrum(MU, n=3, trace=1.0, square_norm=20.0),
        "n: got 3", "at least 4"),
    "one draw": (lambda: dimension.simulate_curve(MU, **DRAWS | {"draws": 1}), "draws: got 1"),
    "no depth": (lambda: dimension.simulate_curve(MU, **DRAWS | {"depth": 0}), "depth: got 0"),
    "too few strengths": (
        lambda: jaxmeta.best_dimension(MU, MU[:2], alpha=0.5), "strengths: got 2", "one per value"),
    # Weights of several sources.
    "too few sigmas": (
        lambda: jaxmeta.aligned_weights((MU, MU), **ALIGNED | {"sigmas": (0.1,)}),
        "sigmas: got 1 entries"),
    "an aligned source with negative noise": (
        lambda: jaxmeta.aligned_weights((MU, MU), **ALIGNED | {"sigmas": (0.1, -0.1)}),
        "sigmas[1]: got -0.1"),
    "an aligned source that is unsorted": (
        lambda: jaxmeta.aligned_weights((MU, WORSE), **ALIGNED), "source_values[1][1]: got 2.0"),
    "aligned sources of too few words": (
        lambda: jaxmeta.aligned_weights((MU, MU), **ALIGNED | {"n": 2}), "n: got 2"),
    "no aligned sources": (
        lambda: jaxmeta.aligned_weights((), **ALIGNED | {"sigmas": ()}), "got no source"),
    "too short a spectrum": (
        lambda: released.released_source_weights((MU, MU[:2]), **RELEASED),
        "source_values[1]: got 2 values", "at least 3", "pass its whole spectrum"),
    "too few sizes": (
        lambda: released.released_source_weights((MU, MU), **RELEASED | {"sizes": (1,)}),
        "sizes: got 1 entries"),
    "released weights of negative noise": (
        lambda: released.released_source_weights((MU, MU), **RELEASED | {"sigmas": (0.1, -1.0)}),
        "sigmas[1]: got -1.0"),
    "released weights of unsorted values": (
        lambda: released.released_source_weights((WORSE, MU), **RELEASED),
        "source_values[0][1]: got 2.0"),
    # Signals.
    **{
        f"{f.__name__} of {what}": (lambda f=f, c=counts: f(c), f"counts[0, 0]: got {got}")
        for f in (jaxmeta.log_count, jaxmeta.ppmi)
        for what, counts, got in (("a loss", -COUNTS, "-1.0"), ("NaN", NAN * COUNTS, "nan"))
    },
    **{
        f"{f.__name__}, shift {shift}": (
            lambda f=f, c=counts, s=shift: f(c, shift=s), f"shift: got {shift}", "negative samples")
        for f in (jaxmeta.shifted_pmi, jaxmeta.ppmi)
        for counts in (jnp.eye(3), COUNTS)
        for shift in (0.0, NAN)
    },
    "a value for unobserved pairs of sparse counts": (
        lambda: jaxmeta.shifted_pmi(COUNTS, shift=3.0, unobserved=-1.0),
        "unobserved: got -1.0", "expected 0 with sparse counts", "counts.toarray()"),
    # Combinations.
    **{
        f"{name} of different words": (lambda f=f: f((E, F)), "align the vocabularies")
        for name, f in (
            ("diagnose", jaxmeta.diagnose),
            ("autoencoded_rows", encoded),
            ("locally_linear", lambda s: jaxmeta.methods.locally_linear(
                s, k=2, neighbours=2, key=KEY)),
            *((f.__name__, lambda s, f=f: f(s, key=KEY)) for f in (
                jaxmeta.methods.averaged_autoencoder,
                jaxmeta.methods.concatenated_autoencoder,
                jaxmeta.methods.decoupled_autoencoder)),
        )
    },
    **{
        f"{name}, present of one source": (lambda f=f: f((E, E), present=ALL[:, :1]), "(6, 1)")
        for name, f in (
            ("average", jaxmeta.combine.average),
            ("svd_reduce", lambda s, present: jaxmeta.svd_reduce(s, k=2, present=present)),
            ("rotated_average", jaxmeta.combine.rotated_average),
            ("predict_missing", jaxmeta.files.predict_missing),
            ("one_to_n_plus", lambda s, present: jaxmeta.methods.one_to_n_plus(s, present, k=2)),
            ("locally_linear", lambda s, present: jaxmeta.methods.locally_linear(
                s, k=2, neighbours=2, key=KEY, present=present)),
            ("averaged_autoencoder", lambda s, present: jaxmeta.methods.averaged_autoencoder(
                s, key=KEY, present=present)),
        )
    },
    **{
        f"{name} in {k} dimensions": (lambda f=f, k=k: f(k), f"k: got {k}", "concatenation has 6")
        for name, f in (
            ("svd_reduce", lambda k: jaxmeta.svd_reduce((E, E), k=k)),
            ("one_to_n", lambda k: jaxmeta.methods.one_to_n((E, E), k=k)),
            ("released_one_to_n", lambda k: released.released_one_to_n((E, E), k=k, key=KEY)),
            ("one_to_n_plus", lambda k: jaxmeta.methods.one_to_n_plus((E, E), ALL, k=k)),
        )
        for k in (0, 7)
    },
    "present of each source for one": (
        lambda: jaxmeta.methods.nearest_neighbours(E, neighbours=1, present=ALL),
        "present: got shape (6, 2)", "(6,)"),
    "align of arrays": (lambda: jaxmeta.align((E, E)), "sources[0]: got a", "read_vectors"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_calls(name):
    call, *words = BAD[name]
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    message = str(raised.value)
    for part in (*words, "expected"):
        assert part in message, message
    assert message.endswith(".")


def test_errors_are_raised_while_tracing():
    """So that they cost nothing per call, and show before anything is compiled."""
    with pytest.raises(ValueError, match="align the vocabularies"):
        jax.eval_shape(jaxmeta.pip_loss, E, F)


def test_validate_is_for_the_host():
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(jaxmeta.validate)(SPECTRUM)
