"""Word2Vec and fastText, as gensim trains them on a corpus, and how long things take."""

import hashlib
import importlib
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxmeta import Corpus
from jaxmeta.files import Cache
from jaxmeta.text.corpus import NO_WORD, read_tokens

MISSING = """\
gensim: got no such package, expected it for Word2Vec and fastText, which are left out;
pip install 'jaxmeta[gensim]'."""


class Time(NamedTuple):
    """How long something took when it was done."""

    seconds: float
    processor: float
    """Seconds of all threads: others that are busy on the machine change it less."""


def timed(
    store: Cache, stage: str, key: dict[str, Any], make: Callable[[], dict[str, np.ndarray]]
) -> tuple[dict[str, np.ndarray], Time]:
    """What `make` does and how long that took, from the cache if it was done before."""

    def run() -> dict[str, np.ndarray]:
        clocks = time.perf_counter, time.process_time
        start = [clock() for clock in clocks]
        made = make()
        return made | {"time": np.array([clock() for clock in clocks]) - start}

    found = store.arrays(stage, key, run)
    return found, Time(*found.pop("time").tolist())


def sentences(
    corpus: Corpus, *, tokens: int | None = None, words: Collection[str] | None = None
) -> Iterator[list[str]]:
    """Documents, in pieces of at most 1,000 words, until there are enough; of some words alone."""
    done, sentence = 0, list[str]()
    for *_, piece in read_tokens(corpus, 1, "read", None):
        for word in (*piece, NO_WORD):
            if word != NO_WORD and (words is None or word in words):
                sentence.append(word)
            if sentence and (word == NO_WORD or len(sentence) == 1000):
                yield sentence
                done, sentence = done + len(sentence), []
                if tokens is not None and done >= tokens:
                    return


def installed() -> bool:
    """Whether gensim is there, with a word on what is missing if not."""
    found = importlib.util.find_spec("gensim") is not None
    if not found:
        print(MISSING, file=sys.stderr)
    return found


def train(
    corpus: Corpus,
    words: Sequence[str],
    store: Cache,
    *,
    restrict: bool,
    subwords: bool,
    **settings: Any,
) -> tuple[np.ndarray, Time]:
    """Rows of `words`, which the text of one file is restricted to if asked, and their time."""

    def make() -> dict[str, np.ndarray]:
        models = importlib.import_module("gensim.models")
        model = models.FastText if subwords else models.Word2Vec
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "text"
            with path.open("w", encoding="utf-8") as file:
                kept = frozenset(words) if restrict else None
                file.writelines(f"{' '.join(one)}\n" for one in sentences(corpus, words=kept))
            # Threads that read a file themselves do not wait for one another.
            found = model(corpus_file=str(path), **settings).wv
        return {"vectors": np.stack([found[word] for word in words])}

    with open(str(corpus.path), "rb") as file:
        text = hashlib.file_digest(file, "sha256").hexdigest()
    key = settings | {
        "text": text,
        "words": hashlib.sha256("\n".join(words).encode()).hexdigest(),
        "restrict": restrict,
        "subwords": subwords,
    }
    made, took = timed(store, "gensim", key, make)
    return made["vectors"], took
