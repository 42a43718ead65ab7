"""Ways of combining sources: `METHODS` has all of them by name, and `meta_embedding` runs one.

`one_ton`, `lle` and `autoencode` are what the paper compares with; it cites `learnt_metric`.
"""

from jaxmeta.methods.autoencode import (
    Autoencoded,
    Autoencoder,
    Layer,
    Training,
    autoencoded_rows,
    averaged_autoencoder,
    concatenated_autoencoder,
    decoupled_autoencoder,
    squared_cosine_proximity,
    squared_error,
)
from jaxmeta.methods.lle import (
    LocallyLinear,
    best_reconstructed,
    locally_linear,
    nearest_neighbours,
    reconstruction_matrix,
    reconstruction_weights,
)
from jaxmeta.methods.metric import LearntMetric, learnt_metric
from jaxmeta.methods.one_ton import one_to_n, one_to_n_plus
from jaxmeta.methods.registry import METHODS, Method, apply, fit, meta_embedding
from jaxmeta.plans import Plan, Settings

__all__ = [
    "METHODS",
    "Autoencoded",
    "Autoencoder",
    "Layer",
    "LearntMetric",
    "LocallyLinear",
    "Method",
    "Plan",
    "Settings",
    "Training",
    "apply",
    "autoencoded_rows",
    "averaged_autoencoder",
    "best_reconstructed",
    "concatenated_autoencoder",
    "decoupled_autoencoder",
    "fit",
    "learnt_metric",
    "locally_linear",
    "meta_embedding",
    "nearest_neighbours",
    "one_to_n",
    "one_to_n_plus",
    "reconstruction_matrix",
    "reconstruction_weights",
    "squared_cosine_proximity",
    "squared_error",
]
