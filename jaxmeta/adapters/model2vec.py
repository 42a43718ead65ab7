"""Vectors go to and from model2vec, which encodes texts by the mean of their words' vectors."""

import copy
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta import _checks
from jaxmeta.files import Vectors, as_vectors

__all__ = ["read_model2vec", "write_model2vec"]

EXTRA = "model2vec"
# Sentence-transformers loads the folder as well, if this says how. It counts unknown words in the
# mean, as vectors of zeros: rows are shorter then, and point the same way.
MODULES = [(".", "StaticEmbedding"), ("1_Normalize", "Normalize")]


def read_model2vec(source: Any) -> Vectors:
    """Read the tokens and vectors of a `StaticModel`, or of the folder of one.

    They are what the model takes the mean of: mapped and weighted if it is quantised, and without
    the unknown token, which it leaves out. Integers become float32.
    """
    if isinstance(source, str | Path):
        if not Path(source).is_dir():  # the package would look for a model of that name elsewhere
            do = "pass the folder that save_pretrained or write_model2vec made"
            _checks.fail("source", str(source), "a folder that is there", do)
        source = _checks.package("model2vec", EXTRA).StaticModel.from_pretrained(source)
    if source.embedding.dtype.kind == "i":
        source = copy.copy(source)
        source.embedding = source.embedding.astype(np.float32)
    words, matrix = as_vectors(source)
    known = np.arange(len(words)) != (-1 if source.unk_token_id is None else source.unk_token_id)
    return Vectors(tuple(words[i] for i in np.flatnonzero(known)), matrix[known])


def write_model2vec(folder: str | Path, vectors: Any, *, normalize: bool = False) -> None:
    r"""Write a folder that `StaticModel.from_pretrained` loads, whole or not at all.

    `vectors` is what `as_vectors` takes, in its dtype. The model encodes a word by its row, and a
    text by the mean of the rows of its words, 0 if it has none; with `normalize` both have length
    1. Words of a text are what stands between white space and punctuation, but for words that have
    some inside, as "don't" and "New York": those are found where they stand whole. If all words are
    in lower case, texts are brought to it. A folder with files in it is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model2vec(f"{folder}/m", (("new york", "is", "big"), np.eye(3, dtype=np.float32)))
    ...     print(read_model2vec(f"{folder}/m").words)
    ('new york', 'is', 'big')
    """
    folder, numpy = Path(folder), _checks.package("safetensors.numpy", EXTRA)
    words, matrix = as_vectors(vectors)
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        do = "choose another name, or remove it first"
        _checks.fail("folder", f"{folder}, which has files", "a new or an empty folder", do)
    tokenizer = _tokenizer(words)
    # The unknown token comes last, and is left out of every mean.
    table = np.concatenate([matrix, np.zeros((1, matrix.shape[1]), matrix.dtype)])
    config = {"normalize": normalize, "max_length": None, "embedding_dtype": str(matrix.dtype)}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(MODULES if normalize else MODULES[:1])
    ]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as part:
        made = Path(part) / "made"
        made.mkdir()
        numpy.save_file({"embeddings": table}, made / "model.safetensors")
        tokenizer.save(str(made / "tokenizer.json"))
        (made / "config.json").write_text(json.dumps(config, indent=4))
        (made / "modules.json").write_text(json.dumps(modules, indent=4))
        made.replace(folder)


def _tokenizer(words: Sequence[str]) -> Any:
    """Make a tokenizer whose tokens are the words in order, and then an unknown one."""
    package = _checks.package("tokenizers", EXTRA)
    unknown = "[UNK]"
    while unknown in words:
        unknown = f"[{unknown}]"
    rows = {word: row for row, word in enumerate([*words, unknown])}
    made = package.Tokenizer(package.models.WordLevel(rows, unk_token=unknown))
    split = package.pre_tokenizers
    made.pre_tokenizer = split.Sequence(
        [split.WhitespaceSplit(), split.Split(package.Regex(r"\W"), behavior="isolated")]
    )
    if all(word == word.lower() for word in words):
        made.normalizer = package.normalizers.Lowercase()
    apart = _not_whole(made, words)
    made.add_tokens([package.AddedToken(words[row], single_word=True) for row in apart])
    # Spaces at its ends would be those between other words.
    for row in [r for r in apart if words[r] != words[r].strip()] or _not_whole(made, words):
        expected = "words that can be found in a text"
        _checks.fail(f"words[{row}]", repr(words[row]), expected, "drop or mend it")
    return made


def _not_whole(tokenizer: Any, words: Sequence[str]) -> list[int]:
    """Find the words that the tokenizer does not give back as they are."""
    found = tokenizer.encode_batch_fast(words, add_special_tokens=False)
    return [row for row, each in enumerate(found) if each.ids != [row]]
