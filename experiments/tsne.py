r"""Words of praise and of blame in two dimensions, for sources and their meta-embeddings.

    python -m experiments.tsne             the list below, in sources of the wiki corpus
    python -m experiments.tsne --smoke     two planted classes of generated words, in seconds

The paper draws t-SNE of words from SentiWords for GloVe, SGNS, LSA and their concatenations, and
lets the eye judge. A picture by t-SNE may show groups that are not there and hide some that are,
so beside it stands what the vectors themselves say: how many words have a nearest neighbour of
their own class (and the majority of their ten nearest), each word being left out when it is
classified, by cosine in the full space. Intervals are Clopper and Pearson's, 95 %.

The words are a list of its own, plainly positive and plainly negative ones; SentiWords is not to be
had here, and its most extreme words are mostly rare. Sources are built as by
`experiments.corpus_to_sources`, with which steps in results/cache are shared.
"""

import dataclasses
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.manifold import TSNE

import jaxmeta
from experiments import _record, corpus_to_sources
from jaxmeta.evaluate import proportion_interval

POSITIVE = """
good great best better excellent wonderful beautiful happy joy love loved perfect brilliant superb
success successful win winner victory triumph glory hope peace freedom friend friendly kind gentle
generous honest loyal brave courage noble wise wisdom clever talented gifted charm charming elegant
delight pleasant pleasure enjoy fun comfort safe healthy strong bright fresh pure praise praised
admired celebrated popular favourite benefit gift reward
""".split()
NEGATIVE = """
bad worse worst poor terrible horrible awful evil cruel brutal violent violence hate hatred anger
angry fear afraid terror sad grief pain painful suffering misery disaster tragedy tragic catastrophe
failure failed defeat defeated loss lost ruin destroyed damage harm dangerous danger threat crime
criminal murder victim death disease sick illness weak stupid foolish corrupt corruption false lie
guilty shame abuse poison war
""".split()
COLOURS = {"positive": _record.BLUE, "negative": _record.VERMILION}
MARKERS = {"positive": "o", "negative": "^"}
NEIGHBOURS = (1, 10)


@dataclass(frozen=True)
class Config:
    """Sources, and how they are drawn."""

    sources: corpus_to_sources.Config = dataclasses.field(
        default_factory=lambda: corpus_to_sources.Config(size=10_000)
    )
    perplexity: float = 30.0
    seed: int = 23
    """Of t-SNE."""
    planted: int | None = None
    """Words of each class in generated text; None means that the list is used."""
    strength: float = 1.0
    """Of the planted classes: see `jaxmeta.latent_model`."""
