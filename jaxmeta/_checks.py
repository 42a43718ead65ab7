"""Checks of arguments, with one wording: the argument, what came, what was expected, what to do.

Shapes and dtypes are looked at while a function is traced, which costs nothing per call. Wrong
*values* (NaN, a negative or unsorted spectrum) are seen only where there are values: `checked`
looks before it compiles, and under a trace the same faults give NaN.
"""

import functools
import importlib
import sys
from collections.abc import Callable, Collection, Sequence, Sized
from typing import Any, NoReturn, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "array",
    "checked",
    "count",
    "descending",
    "embeddings",
    "fail",
    "integer",
    "is_sparse",
    "matrices",
    "noisy",
    "noisy_descending",
    "not_negative",
    "numbers_per_source",
    "offsets",
    "one_of",
    "package",
    "positive",
    "present",
    "same_rows",
    "scalar",
    "sizes",
    "sources",
    "strengths",
]

Function = TypeVar("Function", bound=Callable[..., Any])

LONGEST = 800  # characters of what came: a damaged file may have any number of them
_RANKS = {0: "a scalar", 1: "a vector", 2: "a matrix"}


def fail(
    name: str, got: str, expected: str, do: str, error: type[Exception] = ValueError
) -> NoReturn:
    """Raise `error` in the one wording that all errors of the library have."""
    got, expected = (x if len(x) < LONGEST else f"{x[:LONGEST]}..." for x in (got, expected))
    raise error(f"{name}: got {got}, expected {expected}; {do}.")


def checked(check: Callable[..., None], *, static: Sequence[str] = ()):
    """Decorate a function to run `check` on its arguments, and then itself compiled.

    Values can be looked at before a trace and not within, so `check` stands outside of `jit`.
    """

    def decorate(function: Function) -> Function:
        compiled = jax.jit(function, static_argnames=static)

        @functools.wraps(function)
        def call(*arguments, **settings):
            check(*arguments, **settings)
            return compiled(*arguments, **settings)

        return call  # type: ignore[return-value]

    return decorate


def package(name: str, extra: str) -> Any:
    """A package that is installed with an extra, or an error that names the extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name}: got no such package, expected it for this; pip install 'jaxmeta[{extra}]'."
        ) from error


def is_sparse(value: Any) -> bool:
    """Whether `value` is a SciPy sparse matrix: it is none if nobody has imported them yet."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and module.issparse(value)


def _describe(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"an array of shape {tuple(value.shape)}"
    return f"a {type(value).__name__}"


def array(name: str, value: Any, ndim: int) -> None:
    """`value` is a non-empty float32 or float64 array with `ndim` axes."""
    expected = f"{_RANKS[ndim]} (an array with {ndim} axes)"
    if not hasattr(value, "shape"):
        fail(name, _describe(value), expected, "convert it with jnp.asarray", TypeError)
    if value.ndim != ndim:
        fail(name, _describe(value), expected, "reshape it, or use jax.vmap over a batch")
    if value.dtype not in (jnp.float32, jnp.float64):
        cast = "cast it with .astype(jnp.float32)"
        fail(name, f"dtype {value.dtype}", "float32 or float64", cast, TypeError)
    if 0 in value.shape:
        fail(name, _describe(value), "at least one entry", "drop empty arrays")


def scalar(name: str, value: Any) -> None:
    """`value` is a single real number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return
    if not hasattr(value, "shape"):
        fail(name, _describe(value), "one number", "pass a float", TypeError)
    if value.shape != ():
        fail(name, _describe(value), "one number", "use jax.vmap to try several at once")


def integer(name: str, value: Any, *, least: int, most: int | None = None, of: str = "") -> None:
    """`value` is an int from `least` on, up to `most` if given; `of` says what sets that end."""
    if isinstance(value, bool) or not isinstance(value, int):
        fail(name, _describe(value), "an int", "sizes are static: pass a Python int", TypeError)
    if most is None:
        if value < least:
            fail(name, str(value), f"at least {least}", f"pass {least} or more")
    elif not least <= value <= most:
        fail(name, str(value), f"{least} to {most}", f"{of} has {most}")


def not_negative(name: str, value: Any, do: str = "estimate it with noise_std") -> None:
    """`value` is one number that, where it can be seen, is not negative and not NaN."""
    scalar(name, value)
    if not isinstance(value, jax.core.Tracer) and not value >= 0:
        fail(name, str(value), "a number that is not negative", do)


def positive(name: str, value: Any, do: str = "estimate it with noise_std") -> None:
    """`value` is one number that, where it can be seen, is above 0."""
    scalar(name, value)
    if not isinstance(value, jax.core.Tracer) and not value > 0:
        fail(name, str(value), "a number above 0", do)


def one_of(name: str, value: Any, choices: Collection[str]) -> None:
    """`value` is one of the names in `choices`."""
    if value not in choices:
        fail(name, repr(value), f"one of {', '.join(map(repr, choices))}", "choose one")


def noisy(values: Any, *, sigma: Any, n: int, m: int | None = None, alpha: Any = 0.5) -> None:
    """`values` are of a signal of `n` words (and `m` columns) with noise `sigma`."""
    array("values", values, 1)
    not_negative("sigma", sigma)
    for name, size in (("n", n), ("m", n if m is None else m)):
        integer(name, size, least=values.shape[0])
    scalar("alpha", alpha)


def noisy_descending(values: Any, **settings: Any) -> None:
    """The same, and they descend."""
    descending("values", values)
    noisy(values, **settings)


def descending(name: str, values: Any) -> None:
    """`values` is a vector that, where it can be seen, descends and is not negative."""
    array(name, values, 1)
    if isinstance(values, jax.core.Tracer):
        return
    wrong = np.append(False, values[1:] > values[:-1]) | ~(np.asarray(values) >= 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        expected = "descending numbers that are not negative"
        fail(f"{name}[{i}]", str(values[i]), expected, "sort by magnitude, as decompose does")


def strengths(name: str, given: Any, values: Any) -> None:
    """`given` is a vector with one entry for each of `values`."""
    array("values", values, 1)
    array(name, given, 1)
    if given.shape != values.shape:
        expected = f"{values.shape[0]}, one per value"
        fail(name, str(given.shape[0]), expected, "estimate them from the same values")


def offsets(values: Any) -> None:
    """`values` are counts by offset, one sparse array for each."""
    if not isinstance(values, Sequence) or len(values) == 0:
        got = "none" if isinstance(values, Sequence) else f"a {type(values).__name__}"
        do = "pass counts.whole, or one of its parts"
        fail("offsets", got, "a tuple with one sparse array per offset", do)


def sizes(name: str, values: Any) -> None:
    """`values` is a tuple of positive ints, one per source."""
    if not values:
        fail(name, "no size", "one per source", "pass at least one")
    for j, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            fail(f"{name}[{j}]", str(value), "an int of at least 1", "pass the sources' widths")


def same_rows(**arrays: Any) -> None:
    """All arrays have one row per word, for the same words."""
    rows = {name: value.shape[0] for name, value in arrays.items()}
    if len(set(rows.values())) > 1:
        got = ", ".join(f"{n} rows in {name}" for name, n in rows.items())
        names = " and ".join(rows)
        fail(names, got, "the same words in the same order", "align the vocabularies first")


def matrices(**arrays: Any) -> None:
    """All arrays are matrices that have a row for each of the same words."""
    for name, value in arrays.items():
        array(name, value, 2)
    same_rows(**arrays)


def sources(name: str, values: Any, kind: type | None = None) -> None:
    """`values` is a non-empty sequence of sources, of type `kind` if given."""
    what = kind.__name__ if kind else "array"
    expected = f"a tuple with one {what} per source"
    single = hasattr(values, "shape") or (kind is not None and isinstance(values, kind))
    if single or not isinstance(values, Sequence):
        do = "put a single source in a tuple: (source,)"
        fail(name, _describe(values), expected, do, TypeError)
    if not values:
        fail(name, "no source", expected, "pass at least one")
    for j, value in enumerate(values):
        if kind is not None and not isinstance(value, kind):
            do = "see spectrum_of and decompose"
            fail(f"{name}[{j}]", _describe(value), f"a {what}", do, TypeError)


def embeddings(name: str, values: Any) -> None:
    """`values` is a non-empty sequence of matrices that have a row for each of the same words."""
    sources(name, values)
    for j, value in enumerate(values):
        array(f"{name}[{j}]", value, 2)
        same_rows(**{f"{name}[0]": values[0], f"{name}[{j}]": value})


def present(value: Any, *shape: int) -> None:
    """`value` is an array of bool: which words there are, of one source or of each."""
    index, whose = ("w", "the source") if len(shape) == 1 else ("w, j", "source j")
    do = f"pass present[{index}], whether {whose} has word w"
    if getattr(value, "dtype", None) != jnp.bool_:
        got = f"dtype {value.dtype}" if hasattr(value, "dtype") else _describe(value)
        fail("present", got, "an array of bool", do, TypeError)
    if value.shape != shape:
        fail("present", f"shape {value.shape}", str(shape), do)


def count(name: str, values: Sized, expected: int) -> None:
    """There is one entry of `values` per source."""
    if len(values) != expected:
        fail(name, f"{len(values)} entries", f"{expected}, one per source", "pass one per source")


def numbers_per_source(name: str, values: Any, sizes: Sequence[int]) -> None:
    """`values[j]` is a number, or one number for each of the `sizes[j]` dimensions of source j."""
    expected = f"{len(sizes)} entries, one per source"
    if not (hasattr(values, "shape") or isinstance(values, Sequence)):
        fail(name, _describe(values), expected, "pass a tuple", TypeError)
    if getattr(values, "ndim", 1) == 0:
        fail(name, "a scalar", expected, "pass a tuple")
    count(name, values, len(sizes))
    for j, (value, size) in enumerate(zip(values, sizes, strict=True)):
        shape = jnp.shape(value)
        if shape not in ((), (size,)):
            do = "pass a scalar or one weight per dimension"
            fail(f"{name}[{j}]", f"shape {shape}", f"() or ({size},)", do)
