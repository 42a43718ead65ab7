"""Checks of arguments, with one wording: the argument, what came, what was expected, what to do.

Shapes and dtypes are looked at while a function is traced, which costs nothing per call. Wrong
*values* (NaN, a negative or unsorted spectrum) are seen only where there are values: `checked`
looks before it compiles, and under a trace the same faults give NaN.
"""

import difflib
import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Collection, Sequence, Sized
from typing import Any, NoReturn, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeta._rows import as_of

__all__ = [
    "array", "checked", "count", "descending", "embeddings", "fail", "integer", "is_sparse",
    "matrices", "named", "native", "noisy", "noisy_descending", "not_negative",
    "numbers_per_source", "offsets", "one_of", "package", "positive", "present", "same_rows",
    "scalar", "sizes", "sources", "strengths", "weights",
]  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])

LONGEST = 800  # characters of what came: a damaged file may have any number of them
_RANKS = {0: "a scalar", 1: "a vector", 2: "a matrix"}


def fail(
    name: str, got: str, expected: str, do: str, error: type[Exception] = ValueError
) -> NoReturn:
    """Raise `error` in the one wording that all errors of the library have."""
    got, expected = (x if len(x) < LONGEST else f"{x[:LONGEST]}..." for x in (got, expected))
    raise error(f"{name}: got {got}, expected {expected}; {do}.")


def checked(
    check: Callable[..., None] | None = None, *, static: Sequence[str] = (), discrete: bool = False
):
    """Decorate a function to run `check` on its arguments, and then itself compiled.

    Values can be looked at before a trace and not within, so checks stand outside of `jit`. Numbers
    in another byte order raise, which a program takes for others. So does NaN if results are
    `discrete`: of no integer can be seen that it means nothing.
    """

    def decorate(function: Function) -> Function:
        compiled = jax.jit(function, static_argnames=static)

        @functools.wraps(function)
        def call(*arguments, **settings):
            given = jax.tree.leaves((arguments, settings))
            if any(map(_swapped, given)):
                native(*_first(_swapped, function, arguments, settings))
            if any(map(_foreign, given)):
                _refuse(function, static, arguments, settings)
            if check is not None:
                check(*arguments, **settings)
            if discrete and any(map(_has_nan, given)):
                name, _ = _first(_has_nan, function, arguments, settings)
                fail(name, "NaN", "numbers, for a result that is an integer", "drop or repair it")
            with as_of(given):
                return compiled(*arguments, **settings)

        return call  # type: ignore[return-value]

    return decorate


def _swapped(value: Any) -> bool:
    return isinstance(value, np.ndarray) and not value.dtype.isnative


def native(name: str, value: Any) -> None:
    """`value` is in the byte order of this machine: compiled programs look at nothing but bytes."""
    if _swapped(value):
        do = "convert it with .astype(value.dtype.newbyteorder('='))"
        fail(name, f"dtype {value.dtype}", "the byte order of this machine", do, TypeError)


def _has_nan(value: Any) -> bool:
    """Whether there is NaN among numbers that can be seen."""
    if isinstance(value, jax.core.Tracer):
        return False
    number = isinstance(value, float) or jnp.issubdtype(getattr(value, "dtype", int), jnp.floating)
    return number and bool(np.isnan(value).any())


def _foreign(value: Any) -> bool:
    """Whether it is a file, or something with words: no program takes either."""
    words = not hasattr(value, "shape") and hasattr(value, "words")
    return words or isinstance(value, str | os.PathLike)


def _refuse(function: Any, static: Sequence[str], arguments: Any, settings: Any) -> None:
    """Raise if there is such a thing among arguments that are traced."""
    for name, value in inspect.signature(function).bind(*arguments, **settings).arguments.items():
        plain = type(value) in (tuple, list)
        inner = {f"{name}[{j}]": each for j, each in enumerate(value)} if plain else {}
        for place, each in ({} if name in static else {name: value} | inner).items():
            if _foreign(each):
                fail(place, _describe(each), "arrays alone", _instead(each), TypeError)


def _instead(value: Any) -> str:
    """What to pass instead of something that is no array."""
    if isinstance(value, str | os.PathLike):
        return "read files with read_vectors, and bring them to the same words with align"
    for field in ("sources", "matrix", "embedding"):
        if hasattr(value, field):
            return f"pass its .{field}"
    if isinstance(value, tuple) and any(hasattr(each, "shape") for each in value):
        return "pass one array here; it may be that two arguments are swapped"
    return "convert it with jnp.asarray"


def _first(wrong: Callable[[Any], bool], function: Any, arguments: Any, settings: Any):
    """The name of the first argument that is wrong, and what it is."""
    given = inspect.signature(function).bind(*arguments, **settings).arguments
    for (argument, *inner), value in jax.tree_util.tree_leaves_with_path(dict(given)):
        if wrong(value):
            return argument.key + jax.tree_util.keystr(tuple(inner)), value
    raise AssertionError("nothing is wrong")


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
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'AEIOU' else 'a'} {kind}"


def array(name: str, value: Any, ndim: int) -> None:
    """`value` is a non-empty float32 or float64 array with `ndim` axes."""
    expected = f"{_RANKS[ndim]} (an array with {ndim} axes)"
    if not hasattr(value, "shape"):
        fail(name, _describe(value), expected, _instead(value), TypeError)
    if value.ndim != ndim:
        fail(name, _describe(value), expected, "reshape it, or use jax.vmap over a batch")
    if value.dtype not in (jnp.float32, jnp.float64):
        cast = "cast it with .astype(jnp.float32)"
        fail(name, f"dtype {value.dtype}", "float32 or float64", cast, TypeError)
    if 0 in value.shape:
        fail(name, _describe(value), "at least one entry", "drop empty arrays")


def scalar(name: str, value: Any) -> None:
    """`value` is a single real number."""
    native(name, value)
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
    if not isinstance(value, jax.core.Tracer) and not np.asarray(value) >= 0:
        fail(name, str(value), "a number that is not negative", do)


def positive(name: str, value: Any, do: str = "estimate it with noise_std") -> None:
    """`value` is one number that, where it can be seen, is above 0."""
    scalar(name, value)
    if not isinstance(value, jax.core.Tracer) and not np.asarray(value) > 0:
        fail(name, str(value), "a number above 0", do)


def one_of(name: str, value: Any, choices: Collection[str]) -> None:
    """`value` is one of the names in `choices`."""
    if value not in choices:
        _none_of(name, value, choices)


def named(
    name: str,
    value: Any,
    choices: Collection[str],
    do: str = "pass a string: it comes before the sources",
) -> str:
    """The one of `choices` that `value` names: neither case counts, nor what joins words."""
    if not isinstance(value, str):
        fail(name, _describe(value), f"one of {', '.join(map(repr, choices))}", do, TypeError)
    found = {_plain(choice): choice for choice in choices}
    if _plain(value) not in found:
        _none_of(name, value, choices)
    return found[_plain(value)]


def _none_of(name: str, value: Any, choices: Collection[str]) -> NoReturn:
    plain = {_plain(choice): choice for choice in choices}
    near = difflib.get_close_matches(_plain(str(value)), plain, n=1)
    do = f"choose one: {plain[near[0]]!r} is the nearest" if near else "choose one"
    fail(name, repr(value), f"one of {', '.join(map(repr, choices))}", do)


def _plain(name: str) -> str:
    return "".join(each for each in name.lower() if each.isalnum() or each == "+")


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
    values = np.asarray(values)  # a comparison of JAX's would be a program
    wrong = np.append(False, values[1:] > values[:-1]) | ~(values >= 0)
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
    if _foreign(values):
        fail(name, _describe(values), expected, _instead(values), TypeError)
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


def weights(name: str, values: Any, sizes: Sequence[int]) -> tuple[Any, ...]:
    """A number or a vector for each source: from either, from lists, or from what has `weights`.

    All weights of `exact_weights` are one vector, which is cut into those of each source.
    """
    if hasattr(values, "weights"):
        values = values.weights
        if getattr(values, "shape", None) == (sum(sizes),) != (len(sizes),):
            values = jnp.split(values, np.cumsum(sizes)[:-1])
    if isinstance(values, Sequence):
        values = [_vector(c) if isinstance(c, list | tuple) else c for c in values]
    numbers_per_source(name, values, sizes)
    return tuple(values)


def _vector(values: Sequence[Any]) -> Any:
    """Numbers as an array, of float64 where they are known."""
    return (jnp if any(isinstance(c, jax.core.Tracer) for c in values) else np).asarray(values)
