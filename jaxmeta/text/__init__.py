"""Text becomes counts, counts become signals, and signals become source embeddings."""

from jaxmeta.text.corpus import (
    Corpus,
    Vocabulary,
    build_vocabulary,
    given_vocabulary,
    intersection_vocabulary,
    lower_words,
    union_vocabulary,
    whitespace,
)
from jaxmeta.text.counting import (
    Counts,
    Split,
    contiguous_parts,
    count_windows,
    inverse_distance,
    load_counts,
    random_blocks,
    save_counts,
    symmetric_window,
)
from jaxmeta.text.signals import SIGNALS, log_count, ppmi, shifted_pmi
from jaxmeta.text.sources import EQUALISED, Recipe, Source, build_sources
from jaxmeta.text.synthetic import (
    LatentModel,
    expected_counts,
    latent_model,
    sample_tokens,
    write_corpus,
)

__all__ = [
    "EQUALISED",
    "SIGNALS",
    "Corpus",
    "Counts",
    "LatentModel",
    "Recipe",
    "Source",
    "Split",
    "Vocabulary",
    "build_sources",
    "build_vocabulary",
    "contiguous_parts",
    "count_windows",
    "expected_counts",
    "given_vocabulary",
    "intersection_vocabulary",
    "inverse_distance",
    "latent_model",
    "load_counts",
    "log_count",
    "lower_words",
    "ppmi",
    "random_blocks",
    "sample_tokens",
    "save_counts",
    "shifted_pmi",
    "symmetric_window",
    "union_vocabulary",
    "whitespace",
    "write_corpus",
]
