"""Meta word embeddings by weighted concatenation, in JAX, with the theory checked.

The paper is on the ground floor, a module per topic: `spectral`, `noise`, `nested`, `shrinkage`,
`equalise`, `crossvalidation`, `pip`, `dimension`, `bounds`, `weights`, `quadratic`, `weightings`,
`several`, `released`, `combine`, `prepare`. What is needed around it has rooms of its own: `text`,
`files`, `methods`, `evaluate`. What is not at this front door is reached through its module or
room, as `jaxmeta.text.count_windows`. Each is imported when it is first asked for: `import jaxmeta`
takes no time, and does not import JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxmeta import adapters, evaluate, files, methods, text
    from jaxmeta.bounds import bound_terms
    from jaxmeta.combine import concatenate, svd_reduce
    from jaxmeta.covariance import moments
    from jaxmeta.diagnosis import diagnose
    from jaxmeta.dimension import RULES, best_dimension, paper_dimension, select_dimension
    from jaxmeta.files import Vectors, align, merge_files, read_vectors, write_vectors
    from jaxmeta.methods import METHODS, Settings, apply, fit, meta_embedding
    from jaxmeta.noise import debias, noise_std, usvt
    from jaxmeta.optimise import gradient_weights
    from jaxmeta.pip import pip_curve, pip_loss
    from jaxmeta.plot import plot_diagnosis
    from jaxmeta.prepare import standardise
    from jaxmeta.progress import ProgressBar
    from jaxmeta.quadratic import exact_weights, pip_quadratic
    from jaxmeta.shrinkage import ideal_strengths, rotation_invariant
    from jaxmeta.spectral import Spectrum, decompose, embed, spectrum_of, validate
    from jaxmeta.text import Corpus, Recipe, build_sources, log_count, ppmi, shifted_pmi
    from jaxmeta.weightings import WEIGHTINGS
    from jaxmeta.weights import (
        aligned_weights,
        dimension_weights,
        shrinkage_weights,
        source_weights,
        strength_weights,
    )

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022 - by topic
    # spectra, losses and bounds
    "Spectrum", "decompose", "spectrum_of", "embed", "validate", "pip_loss", "pip_curve",
    "bound_terms",
    # noise and dimensions
    "noise_std", "usvt", "debias", "rotation_invariant", "ideal_strengths", "RULES",
    "best_dimension", "select_dimension", "paper_dimension",
    # weights
    "WEIGHTINGS", "source_weights", "dimension_weights", "strength_weights",
    "shrinkage_weights", "aligned_weights", "pip_quadratic", "exact_weights",
    "gradient_weights",
    # meta-embeddings
    "concatenate", "svd_reduce", "standardise", "METHODS", "Settings", "meta_embedding", "moments",
    "fit", "apply", "diagnose", "plot_diagnosis",
    # from text, and from files
    "Corpus", "Recipe", "build_sources", "log_count", "ppmi", "shifted_pmi", "Vectors", "align",
    "merge_files", "read_vectors", "write_vectors", "ProgressBar",
    # rooms
    "adapters", "evaluate", "files", "methods", "text",
]  # fmt: skip

_ROOMS = {
    "adapters": (),
    "affine": (),
    "bounds": ("bound_terms",),
    "combine": ("concatenate", "svd_reduce"),
    "covariance": ("moments",),
    "crossvalidation": (),
    "diagnosis": ("diagnose",),
    "dimension": ("RULES", "best_dimension", "paper_dimension", "select_dimension"),
    "eigen": (),
    "equalise": (),
    "evaluate": (),
    "files": ("Vectors", "align", "merge_files", "read_vectors", "write_vectors"),
    "linalg": (),
    "methods": ("METHODS", "Settings", "apply", "fit", "meta_embedding"),
    "mesh": (),
    "nested": (),
    "noise": ("debias", "noise_std", "usvt"),
    "optimise": ("gradient_weights",),
    "pip": ("pip_curve", "pip_loss"),
    "plans": (),
    "plot": ("plot_diagnosis",),
    "prepare": ("standardise",),
    "progress": ("ProgressBar",),
    "quadratic": ("exact_weights", "pip_quadratic"),
    "released": (),
    "several": (),
    "shrinkage": ("ideal_strengths", "rotation_invariant"),
    "similarity": (),
    "spectral": ("Spectrum", "decompose", "embed", "spectrum_of", "validate"),
    "spelling": (),
    "text": ("Corpus", "Recipe", "build_sources", "log_count", "ppmi", "shifted_pmi"),
    "weightings": ("WEIGHTINGS",),
    "weights": (
        "aligned_weights",
        "dimension_weights",
        "shrinkage_weights",
        "source_weights",
        "strength_weights",
    ),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"jaxmeta.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"jaxmeta.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'jaxmeta' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
