"""Statements of the paper that can be checked by numbers, and their verdicts.

One module per statement, each with the statement as printed, the form that holds, a proof, and a
counterexample where the print fails. `python -m theory` runs them all and prints the verdicts.

A module has `CLAIM`, the statement in a line; `ORIGIN`, the sentence of the paper, where it stands,
and whether the statement is printed there, a reading of it, or ours; `PRINTED_HOLDS`, the recorded
verdict on the statement as it stands; `check(rng, instances)`, which draws instances and returns a
`Verdict`; and, where the statement does not hold, `counterexample()`.
"""

import difflib
import zlib
from collections.abc import Iterator, Sequence
from types import ModuleType

import numpy as np

from . import (
    aligned_weights,
    best_use,
    bias,
    convex_in_k,
    debiased_spectrum,
    different_alphas,
    dimension_rule,
    dimension_weights,
    equalised_noise,
    exact_weights,
    exponent,
    held_out_strengths,
    lemma1,
    lemma1_any_norm,
    lemma2,
    nested_variance,
    noise_and_dimension,
    noise_estimate,
    one_minimum_in_k,
    overlap_law,
    paper_recipe,
    precision_average,
    rank_rule,
    robust_alpha,
    rotation,
    rotation_invariant_weights,
    source_weights,
    sum_to_one,
    telescoping,
    theorem1,
    theorem1_n_sources,
    theorem1_single_source,
    tightness_of_bound,
    unitary_invariance,
    weights_minimise_loss,
)
from .verdict import Counterexample, Verdict

# In the order of the paper.
STATEMENTS: tuple[ModuleType, ...] = (
    unitary_invariance,
    theorem1,
    different_alphas,
    tightness_of_bound,
    dimension_weights,
    source_weights,
    weights_minimise_loss,
    exact_weights,
    aligned_weights,
    precision_average,
    best_use,
    rotation_invariant_weights,
    sum_to_one,
    rotation,
    noise_estimate,
    nested_variance,
    rank_rule,
    debiased_spectrum,
    overlap_law,
    equalised_noise,
    held_out_strengths,
    dimension_rule,
    noise_and_dimension,
    paper_recipe,
    lemma1,
    telescoping,
    bias,
    theorem1_n_sources,
    theorem1_single_source,
    exponent,
    robust_alpha,
    convex_in_k,
    one_minimum_in_k,
    lemma2,
    lemma1_any_norm,
)


def name(statement: ModuleType) -> str:
    """The name of a statement: that of its module."""
    return statement.__name__.rpartition(".")[2]


def select(names: Sequence[str]) -> tuple[ModuleType, ...]:
    """The statements of these names, in the order of the paper; all of them if there are none."""
    known = [name(statement) for statement in STATEMENTS]
    for wanted in names:
        if wanted not in known:
            (nearest,) = difflib.get_close_matches(wanted, known, n=1, cutoff=0)
            raise ValueError(f"got {wanted!r}, expected names of --list; nearest is {nearest!r}")
    return tuple(s for s in STATEMENTS if not names or name(s) in names)


def run(*, instances: int, seed: int, only: Sequence[str] = ()) -> Iterator[Verdict]:
    """Verdicts, one statement after the other, in 64 bit, each with random numbers of its own."""
    for statement in select(only):
        rng = np.random.default_rng([seed, zlib.crc32(name(statement).encode())])
        yield statement.check(rng, instances)


def counterexamples(only: Sequence[str] = ()) -> dict[str, Counterexample]:
    """The pinned counterexamples, by statement."""
    return {
        name(statement): statement.counterexample()
        for statement in select(only)
        if hasattr(statement, "counterexample")
    }
