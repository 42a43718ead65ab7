"""Checks of what shapes and dtypes alone can tell.

They run while a function is traced, so they cost nothing per call. Every message has one form:
the argument, what came, what was expected, what to do. Wrong *values* (NaN, a negative or unsorted
spectrum) cannot be seen here; they give NaN, and `jaxmeta.validate` names them on the host.
"""

from collections.abc import Sequence, Sized
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "array",
    "count",
    "descending",
    "embeddings",
    "integer",
    "not_negative",
    "numbers_per_source",
    "positive",
    "present",
    "same_rows",
    "scalar",
    "sizes",
    "sources",
    "strengths",
]

_RANKS = {0: "a scalar", 1: "a vector", 2: "a matrix"}


def _fail(name: str, got: str, expected: str, remedy: str, error: type[Exception] = ValueError):
    raise error(f"{name}: got {got}, expected {expected}; {remedy}.")


def _describe(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"an array of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def array(name: str, value: Any, ndim: int) -> None:
    """`value` is a non-empty float32 or float64 array with `ndim` axes."""
    expected = f"{_RANKS[ndim]} (an array with {ndim} axes)"
    if not hasattr(value, "shape"):
        _fail(name, _describe(value), expected, "convert it with jnp.asarray", TypeError)
    if value.ndim != ndim:
        _fail(name, _describe(value), expected, "reshape it, or use jax.vmap over a batch")
    if value.dtype not in (jnp.float32, jnp.float64):
        cast = "cast it with .astype(jnp.float32)"
        _fail(name, f"dtype {value.dtype}", "float32 or float64", cast, TypeError)
    if 0 in value.shape:
        _fail(name, _describe(value), "at least one entry", "drop empty arrays")


def scalar(name: str, value: Any) -> None:
    """`value` is a single real number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return
    if not hasattr(value, "shape"):
        _fail(name, _describe(value), "one number", "pass a float", TypeError)
    if value.shape != ():
        _fail(name, _describe(value), "one number", "use jax.vmap to try several at once")


def integer(name: str, value: Any, *, least: int, most: int | None = None, of: str = "") -> None:
    """`value` is an int from `least` on, up to `most` if given; `of` says what sets that end."""
    if isinstance(value, bool) or not isinstance(value, int):
        _fail(name, _describe(value), "an int", "sizes are static: pass a Python int", TypeError)
    if most is None:
        if value < least:
            _fail(name, str(value), f"at least {least}", f"pass {least} or more")
    elif not least <= value <= most:
        _fail(name, str(value), f"{least} to {most}", f"{of} has {most}")


def not_negative(name: str, value: Any) -> None:
    """`value` is one number that, where it can be seen, is not negative and not NaN."""
    scalar(name, value)
    if not isinstance(value, jax.core.Tracer) and not value >= 0:
        _fail(name, str(value), "a number that is not negative", "estimate it with noise_std")


def positive(name: str, value: Any, remedy: str = "estimate it with noise_std") -> None:
    """`value` is one number that, where it can be seen, is above 0."""
    scalar(name, value)
    if not isinstance(value, jax.core.Tracer) and not value > 0:
        _fail(name, str(value), "a number above 0", remedy)


def descending(name: str, values: Any) -> None:
    """`values` is a vector that, where it can be seen, descends and is not negative."""
    array(name, values, 1)
    if isinstance(values, jax.core.Tracer):
        return
    wrong = np.append(False, values[1:] > values[:-1]) | ~(np.asarray(values) >= 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        expected = "descending numbers that are not negative"
        _fail(f"{name}[{i}]", str(values[i]), expected, "sort by magnitude, as decompose does")


def strengths(name: str, given: Any, values: Any) -> None:
    """`given` is a vector with one entry for each of `values`."""
    array("values", values, 1)
    array(name, given, 1)
    if given.shape != values.shape:
        expected = f"{values.shape[0]}, one per value"
        _fail(name, str(given.shape[0]), expected, "estimate them from the same values")


def sizes(name: str, values: Any) -> None:
    """`values` is a tuple of positive ints, one per source."""
    if not values:
        _fail(name, "no size", "one per source", "pass at least one")
    for j, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            _fail(f"{name}[{j}]", str(value), "an int of at least 1", "pass the sources' widths")


def same_rows(**arrays: Any) -> None:
    """All arrays have one row per word, for the same words."""
    rows = {name: value.shape[0] for name, value in arrays.items()}
    if len(set(rows.values())) > 1:
        got = ", ".join(f"{n} rows in {name}" for name, n in rows.items())
        names = " and ".join(rows)
        _fail(names, got, "the same words in the same order", "align the vocabularies first")


def sources(name: str, values: Any, kind: type | None = None) -> None:
    """`values` is a non-empty sequence of sources, of type `kind` if given."""
    what = kind.__name__ if kind else "array"
    expected = f"a tuple with one {what} per source"
    single = hasattr(values, "shape") or (kind is not None and isinstance(values, kind))
    if single or not isinstance(values, Sequence):
        _fail(
            name,
            _describe(values),
            expected,
            "put a single source in a tuple: (source,)",
            TypeError,
        )
    if not values:
        _fail(name, "no source", expected, "pass at least one")
    for j, value in enumerate(values):
        if kind is not None and not isinstance(value, kind):
            _fail(
                f"{name}[{j}]",
                _describe(value),
                f"a {what}",
                "see spectrum_of and decompose",
                TypeError,
            )


def embeddings(name: str, values: Any) -> None:
    """`values` is a non-empty sequence of matrices that have a row for each of the same words."""
    sources(name, values)
    for j, value in enumerate(values):
        array(f"{name}[{j}]", value, 2)
        same_rows(**{f"{name}[0]": values[0], f"{name}[{j}]": value})


def present(value: Any, *shape: int) -> None:
    """`value` is an array of bool: which words there are, of one source or of each."""
    index, whose = ("w", "the source") if len(shape) == 1 else ("w, j", "source j")
    remedy = f"pass present[{index}], whether {whose} has word w"
    if getattr(value, "dtype", None) != jnp.bool_:
        got = f"dtype {value.dtype}" if hasattr(value, "dtype") else _describe(value)
        _fail("present", got, "an array of bool", remedy, TypeError)
    if value.shape != shape:
        _fail("present", f"shape {value.shape}", str(shape), remedy)


def count(name: str, values: Sized, expected: int) -> None:
    """There is one entry of `values` per source."""
    if len(values) != expected:
        _fail(name, f"{len(values)} entries", f"{expected}, one per source", "pass one per source")


def numbers_per_source(name: str, values: Any, sizes: Sequence[int]) -> None:
    """`values[j]` is a number, or one number for each of the `sizes[j]` dimensions of source j."""
    if not (hasattr(values, "shape") or isinstance(values, Sequence)):
        _fail(
            name,
            _describe(values),
            f"{len(sizes)} entries, one per source",
            "pass a tuple",
            TypeError,
        )
    if getattr(values, "ndim", 1) == 0:
        _fail(name, "a scalar", f"{len(sizes)} entries, one per source", "pass a tuple")
    count(name, values, len(sizes))
    for j, (value, size) in enumerate(zip(values, sizes, strict=True)):
        shape = jnp.shape(value)
        if shape not in ((), (size,)):
            got = f"shape {shape}"
            _fail(
                f"{name}[{j}]", got, f"() or ({size},)", "pass a scalar or one weight per dimension"
            )
