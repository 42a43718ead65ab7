"""Meta word embeddings by weighted concatenation, in JAX, with the theory checked.

The paper is on the ground floor, a module per topic: `spectral`, `noise`, `shrinkage`, `pip`,
`dimension`, `bounds`, `weights`, `quadratic`, `weightings`, `released`, `combine`, `prepare`. What
is needed around it has rooms of its own, which are imported when they are first entered: `text`,
`files`, `methods`, `evaluate`. What is not at this front door is reached through its module or
room, as `jaxmeta.text.count_windows`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from jaxmeta.bounds import bound_terms
from jaxmeta.combine import concatenate, svd_reduce
from jaxmeta.dimension import RULES, best_dimension, paper_dimension, select_dimension
from jaxmeta.noise import debias, noise_std, usvt
from jaxmeta.pip import pip_curve, pip_loss
from jaxmeta.prepare import standardise
from jaxmeta.progress import ProgressBar
from jaxmeta.quadratic import exact_weights, pip_quadratic
from jaxmeta.shrinkage import ideal_strengths, rotation_invariant
from jaxmeta.spectral import Spectrum, decompose, embed, spectrum_of, validate
from jaxmeta.weightings import WEIGHTINGS
from jaxmeta.weights import (
    aligned_weights,
    dimension_weights,
    shrinkage_weights,
    source_weights,
    strength_weights,
)

if TYPE_CHECKING:
    from jaxmeta import evaluate, files, methods, text
    from jaxmeta.diagnosis import diagnose
    from jaxmeta.files import Vectors, align, merge_files, read_vectors, write_vectors
    from jaxmeta.methods import METHODS, Settings, meta_embedding
    from jaxmeta.optimise import gradient_weights
    from jaxmeta.plot import plot_diagnosis
    from jaxmeta.text import Corpus, Recipe, build_sources, log_count, ppmi, shifted_pmi

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "RULES",
    "WEIGHTINGS",
    "Corpus",
    "ProgressBar",
    "Recipe",
    "Settings",
    "Spectrum",
    "Vectors",
    "align",
    "aligned_weights",
    "best_dimension",
    "bound_terms",
    "build_sources",
    "concatenate",
    "debias",
    "decompose",
    "diagnose",
    "dimension_weights",
    "embed",
    "evaluate",
    "exact_weights",
    "files",
    "gradient_weights",
    "ideal_strengths",
    "log_count",
    "merge_files",
    "meta_embedding",
    "methods",
    "noise_std",
    "paper_dimension",
    "pip_curve",
    "pip_loss",
    "pip_quadratic",
    "plot_diagnosis",
    "ppmi",
    "read_vectors",
    "rotation_invariant",
    "select_dimension",
    "shifted_pmi",
    "shrinkage_weights",
    "source_weights",
    "spectrum_of",
    "standardise",
    "strength_weights",
    "svd_reduce",
    "text",
    "usvt",
    "validate",
    "write_vectors",
]

_ROOMS = {
    "diagnosis": ("diagnose",),
    "evaluate": (),
    "files": ("Vectors", "align", "merge_files", "read_vectors", "write_vectors"),
    "methods": ("METHODS", "Settings", "meta_embedding"),
    "optimise": ("gradient_weights",),
    "plot": ("plot_diagnosis",),
    "text": ("Corpus", "Recipe", "build_sources", "log_count", "ppmi", "shifted_pmi"),
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
