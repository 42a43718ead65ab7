"""jaxmeta from other libraries: an estimator, encoders of texts, and folders of models.

`MetaEmbedding` is a transformer of scikit-learn; `Encoders` are several encoders of texts as one,
for sentence-transformers and mteb; `read_model2vec` and `write_model2vec` are for model2vec.
gensim's KeyedVectors go in by `jaxmeta.files.as_vectors`, and out by `to_gensim`. A file, and what
it needs, is imported when one of its names is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxmeta.adapters.encoders import Encoders
    from jaxmeta.adapters.estimator import MetaEmbedding
    from jaxmeta.adapters.model2vec import read_model2vec, write_model2vec

__all__ = ["Encoders", "MetaEmbedding", "read_model2vec", "write_model2vec"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        home = {"Encoders": "encoders", "MetaEmbedding": "estimator"}.get(name, "model2vec")
        return getattr(importlib.import_module(f"jaxmeta.adapters.{home}"), name)
    raise AttributeError(f"module 'jaxmeta.adapters' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
