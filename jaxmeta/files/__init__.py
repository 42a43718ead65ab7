"""Files of vectors are read and written, brought to the same words, and merged; plans are kept."""

from jaxmeta._files import Cache, write_whole
from jaxmeta.files.alignment import Aligned, Coverage, align, predict_missing
from jaxmeta.files.description import Description, describe
from jaxmeta.files.merge import merge_files
from jaxmeta.files.plan_files import load_plan, plan_header, save_plan
from jaxmeta.files.vectors import (
    DuplicateWords,
    Vectors,
    as_vectors,
    read_vectors,
    to_gensim,
    write_vectors,
)

__all__ = [
    "Aligned",
    "Cache",
    "Coverage",
    "Description",
    "DuplicateWords",
    "Vectors",
    "align",
    "as_vectors",
    "describe",
    "load_plan",
    "merge_files",
    "plan_header",
    "predict_missing",
    "read_vectors",
    "save_plan",
    "to_gensim",
    "write_vectors",
    "write_whole",
]
