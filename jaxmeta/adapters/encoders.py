"""Several encoders of texts encode as one, by a plan that says how their rows are combined."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from jaxmeta import _checks
from jaxmeta.covariance import moments
from jaxmeta.methods import METHODS, Settings, apply, fit
from jaxmeta.plans import PLANS, check_needs, needs
from jaxmeta.progress import Progress, ProgressBar, silent

__all__ = ["Encoders"]

SHOWN = 60  # letters of a text in a message
# What mteb tells of a task, and what users of sentence-transformers say of rows that is so anyway.
TASK = frozenset({"task_metadata", "task_name", "hf_split", "hf_subset", "prompt_type"})
ANYWAY = {
    "convert_to_numpy": (True,),
    "convert_to_tensor": (False,),
    "precision": (None, "float32"),
    "truncate_dim": (None,),
}

Rows = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Encoders:
    """Encoders of texts, and what is done to the rows of each.

    An encoder is a function of a list of texts that returns a matrix with a row for each, or has
    one called `encode`, as the models of sentence-transformers and model2vec do. The whole is such
    an encoder again, and one for mteb.

    >>> first = lambda texts: np.array([[len(text), 1.0] for text in texts], np.float32)
    >>> second = lambda texts: np.array([[text.count("a")] for text in texts], np.float32)
    >>> both = Encoders.fit("UW", (first, second), ["a", "banana", "bee"])
    >>> print(both.encode(["an apple", "a pear"]))
    [[8. 1. 2.]
     [6. 1. 2.]]
    """

    encoders: Sequence[Any]
    plan: Any
    """Of `jaxmeta.fit`, for rows of these encoders in this order."""
    mteb_model_meta: ClassVar[None] = None  # by which mteb knows that it has an encoder

    @classmethod
    def fit(
        cls,
        name: str,
        encoders: Sequence[Any],
        texts: Iterable[str],
        settings: Settings | None = None,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> "Encoders":
        r"""Fit the plan of the method of that name, one of `METHODS`, to rows of `texts`.

        Texts are read once, and encoders get `batch_size` at a time. `progress` is called with
        "fit" and the fraction of `texts` that is read, if they have a length.

        Cost: $O(nK^2)$ beside the encoders. Memory for linear methods, those of
        `jaxmeta.plans.PLANS`: $O(K^2)$ and a batch; for others: all rows.
        """
        name = _checks.named("name", name, METHODS)
        if METHODS[name].unplanned:  # say so before much is encoded
            do = METHODS[name].unplanned
            _checks.fail("name", repr(name), "a method with a plan for other rows", do)
        settings = settings or Settings()
        check_needs(name, METHODS[name].needs, settings)
        total = len(texts) if isinstance(texts, Sequence | np.ndarray) else None
        batches = _encoded(encoders, _strings(texts), batch_size, total, "fit", progress)
        stats: Any = None
        if name in PLANS:
            for rows in batches:
                more = moments(rows, **needs(name, settings))
                stats = more if stats is None else stats + more
        else:
            stats = tuple(jnp.asarray(np.concatenate(rows)) for rows in zip(*batches, strict=True))
        if not stats:
            _checks.fail("texts", "none", "some texts to fit to", "pass what is like those to come")
        return cls(tuple(encoders), fit(name, stats, settings))

    def encode(
        self,
        texts: Any,
        *,
        batch_size: int = 32,
        show_progress_bar: bool | None = False,
        normalize_embeddings: bool = False,
        progress: Progress | None = None,
        **told: Any,
    ) -> Float[np.ndarray, "..."]:
        """Encode texts as rows of the meta-embedding, in their order; a single text as a vector.

        `texts` is a list of strings, or the batches of them that mteb passes: dictionaries with
        "text". Encoders get `batch_size` texts at a time. With `normalize_embeddings` rows have
        length 1. `progress` is called with "encode" and the fraction done; `show_progress_bar` is
        short for a `ProgressBar`. What mteb tells of its task is not passed on.
        """
        for name, value in told.items():
            if name not in TASK and value not in ANYWAY.get(name, ()):
                do = "give encoders what they need in functions of your own"
                _checks.fail("encode", f"{name}={value!r}", "no such argument", do, TypeError)
        progress = progress or (ProgressBar() if show_progress_bar else None)
        given = [texts] if isinstance(texts, str) else list(_strings(texts))
        batches = _encoded(self.encoders, given, batch_size, len(given), "encode", progress)
        found = [self._applied(rows, batch_size) for rows in batches]
        if not found:
            return np.zeros((0, self.plan.width), np.float32)
        whole = np.concatenate(found)
        if normalize_embeddings:
            whole = _unit(whole)
        return whole[0] if isinstance(texts, str) else whole

    def _applied(self, rows: Rows, batch_size: int) -> np.ndarray:
        """Apply the plan; a program is compiled for each number of rows, so there are few."""
        count = len(rows[0])
        room = min(batch_size, 1 << (count - 1).bit_length()) - count
        padded = tuple(jnp.asarray(np.pad(own, ((0, room), (0, 0)))) for own in rows)
        return np.asarray(apply(self.plan, padded))[:count]

    def similarity(self, first: Any, second: Any) -> Float[np.ndarray, "n m"]:
        """Return the cosine of each row of `first` with each of `second`."""
        return _unit(first) @ _unit(second).T

    def similarity_pairwise(self, first: Any, second: Any) -> Float[np.ndarray, " n"]:
        """Return the cosine of each row of `first` with that row of `second`."""
        return np.sum(_unit(first) * _unit(second), axis=1)


def _unit(rows: Any) -> np.ndarray:
    """Divide rows by their length, but for those of zeros; a vector is one row."""
    rows = np.atleast_2d(np.asarray(rows))
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1)


def _strings(given: Iterable[Any]) -> Iterator[str]:
    """Yield texts one by one, out of batches if that is how they come."""
    if isinstance(given, str):
        _checks.fail("texts", "one text", "a list of texts", "put it in a list", TypeError)
    for one in given:
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping) and "text" in one:
            yield from _strings(one["text"])
        else:
            do = "pass a list of strings"
            _checks.fail("texts", f"a {type(one).__name__} among them", "strings", do, TypeError)


def _encoded(
    encoders: Sequence[Any],
    texts: Iterable[str],
    batch_size: int,
    total: int | None,
    stage: str,
    progress: Progress | None,
) -> Iterator[Rows]:
    """Yield the rows of all encoders for one batch of texts after the other."""
    _checks.sources("encoders", encoders)
    _checks.integer("batch_size", batch_size, least=1)
    shown, texts, done, before = progress or silent, iter(texts), 0, None
    while batch := list(islice(texts, batch_size)):
        rows = _rows(encoders, batch, done)
        widths = tuple(own.shape[1] for own in rows)
        if before is not None and widths != before:
            got, do = f"widths {widths} from text {done} on", "pass encoders that do not change"
            _checks.fail("encoders", got, f"{before}, as before", do)
        yield rows
        before, done = widths, done + len(batch)
        if total:
            shown(stage, done / total)


def _rows(encoders: Sequence[Any], texts: list[str], start: int) -> Rows:
    """Encode some texts, the first of which is number `start`, and check what comes."""
    found = []
    for j, encoder in enumerate(encoders):
        encode = getattr(encoder, "encode", encoder)
        if not callable(encode):
            got, do = f"a {type(encoder).__name__}", "pass one that takes a list of texts"
            expected = "a function, or a model with encode"
            _checks.fail(f"encoders[{j}]", got, expected, do, TypeError)
        found.append(np.asarray(encode(texts)))
        if found[j].ndim != 2 or len(found[j]) != len(texts):
            got, expected = f"shape {found[j].shape}", f"a row for each of {len(texts)} texts"
            do = "make it return a matrix, in the order of the texts"
            _checks.fail(f"encoders[{j}]", got, expected, do)
    dtype = jax.dtypes.canonicalize_dtype(np.result_type(np.float32, *found))
    with np.errstate(over="ignore"):
        rows = tuple(own.astype(dtype, copy=False) for own in found)
    for j, own in enumerate(rows):
        wrong = ~np.isfinite(own).all(axis=1)
        if wrong.any():
            i = int(np.argmax(wrong))
            got = f"NaN or infinity for text {start + i}, {texts[i][:SHOWN]!r}"
            _checks.fail(f"encoders[{j}]", got, "finite numbers", "drop it, or mend the encoder")
    return rows
