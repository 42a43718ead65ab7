"""Every public function has a row in the API table, or a reason why not."""

import importlib
import pkgutil

import jax
import pytest
import test_promises_noise
import test_promises_plans
import test_promises_rooms
import test_promises_similarity
import test_promises_spectra
import test_promises_weights
from api_promises import functions_of

import jaxmeta

pytestmark = pytest.mark.one_leg

MODULES = (
    test_promises_noise, test_promises_plans, test_promises_rooms, test_promises_similarity,
    test_promises_spectra, test_promises_weights,
)  # fmt: skip
TABLE = {name: row for module in MODULES for name, row in module.TABLE.items()}
# These look at values, read files, draw or loop on the host, so they cannot be traced.
HOST_MODULES = (
    "jaxmeta.adapters", "jaxmeta.cli", "jaxmeta.diagnosis", "jaxmeta.eigen", "jaxmeta.evaluate",
    "jaxmeta.files", "jaxmeta.mesh", "jaxmeta.plot", "jaxmeta.progress", "jaxmeta.text",
)  # fmt: skip
HOST_ONLY = {
    "apply", "averaged_autoencoder", "best_reconstructed", "best_use", "concatenated_autoencoder",
    "decoupled_autoencoder", "equal_rows", "estimate_ideal", "fit", "locally_linear",
    "meta_embedding", "nested_noise", "reconstruction_matrix", "released_window",
    "semicircle_distance", "validate", "weigh", "word_forms",
}  # fmt: skip
# Functions that modules share: rows of what is made of them hold for them, and they have tests.
SHARED = {
    "axis_lengths", "centred_gram", "check_k", "check_needs", "check_spectrum", "check_widths",
    "column_norms", "common_unit", "difference", "distance_to_boundary", "eigh", "fix_signs",
    "known", "leading_bits", "left_axes", "loss_changes", "mean_of", "needs", "norm", "outside",
    "pairs_of", "power", "power_of_two", "raw_gram", "reduced", "residual", "rotations_between",
    "row_norms", "safe_ratio", "safe_sqrt", "singular_values", "split_columns", "svd", "unit",
}  # fmt: skip
# Results that are not homogeneous in any argument, or for orthonormal arguments alone.
IN_ONE_UNIT = {
    "autoencoded_rows", "lemma1", "log_count", "per_source", "pip_quadratic", "principal_sines",
    "released_2021_dimension_weights", "released_2021_source_weights", "simplex",
}  # fmt: skip
# These take functions, or would be differentiated through all steps of a descent: see
# test_optimise, test_equalise and test_metric.
OF_FUNCTIONS = {"cross_validated", "gradient_weights", "held_out_strengths", "learnt_metric"}


def modules():
    """All modules but those whose names begin with an underscore."""
    found = pkgutil.walk_packages(jaxmeta.__path__, "jaxmeta.")
    return [name for _, name, _ in found if not name.rpartition(".")[2].startswith("_")]


def test_every_public_function_has_a_row():
    public = {
        function: name
        for name in modules()
        for function in functions_of(importlib.import_module(name))
    }
    host = {function for function, name in public.items() if name.startswith(HOST_MODULES)}
    rows = {name.split(",")[0] for name in TABLE}
    assert set(public) - host - HOST_ONLY - SHARED - OF_FUNCTIONS <= rows
    assert rows | HOST_ONLY | SHARED | OF_FUNCTIONS <= set(public)


def test_every_row_says_how_its_results_scale():
    assert {name for name, row in TABLE.items() if not row.scaling} == IN_ONE_UNIT


def test_compilations_are_noticed(compilations):
    jax.jit(lambda x: x + 1)(0.0)
    assert compilations
