"""A function is known again in another run by what it computes with.

That is its name and its code, defaults and what is bound to it; not what it calls, nor what stands
in its module.
"""

import functools
import hashlib
import inspect
import io
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

from jaxmeta import _checks

__all__ = ["identity"]


def identity(function: Callable[..., Any]) -> str:
    """Tell in a word what a function is, or refuse one that could not be known again."""
    try:
        content = _content(function)
    except (ValueError, TypeError, AttributeError, RecursionError, pickle.PicklingError) as error:
        do = "define it at the top of a module, or pass cache=None"
        expected = "functions that have a name of their own, and objects that can be pickled"
        _checks.fail("cache", f"{function!r} ({error})", expected, do)
    return hashlib.sha256(content).hexdigest()


def _content(value: Any) -> bytes:
    """Bytes that are the same for the same content."""
    file = io.BytesIO()
    pickler = _Pickler(file, protocol=5)
    pickler.fast = True  # it does not matter whether equal parts are one object
    pickler.dump(value)
    return file.getvalue()


class _Pickler(pickle.Pickler):
    """Pickles by content what else is pickled by its name, or in an order that changes."""

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, set | frozenset):
            return "set", sorted(map(_content, value))
        if isinstance(value, functools.partial):
            return "partial", value.func, value.args, sorted(value.keywords.items())
        if isinstance(value, types.MethodType):
            return "method", value.__func__, value.__self__
        if isinstance(value, types.CodeType):
            return value.co_code, value.co_consts, value.co_names
        if isinstance(value, type):
            functions = [x for x in vars(value).values() if isinstance(x, types.FunctionType)]
            return (_name(value), [x.__code__ for x in functions]) if functions else None
        if inspect.isroutine(value) or hasattr(value, "__wrapped__"):
            return _function(value)
        return None  # as pickle does


def _function(value: Any) -> Any:
    """A function by its name and code, and a method in C by what it is bound to."""
    name, inner = _name(value), inspect.unwrap(value)
    if not isinstance(inner, types.FunctionType):
        owner = getattr(value, "__self__", None)
        return name, None if isinstance(owner, types.ModuleType) else owner
    found: Any = sys.modules.get(value.__module__)
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is value:
        bound = None
    else:  # another that a decorator has given this name
        bound = [cell.cell_contents for cell in value.__closure__ or ()], value.__code__
    return name, inner.__code__, inner.__defaults__, inner.__kwdefaults__, bound


def _name(value: Any) -> str:
    name = f"{getattr(value, '__module__', None) or 'builtins'}.{value.__qualname__}"
    if "<" in name:
        raise pickle.PicklingError(name)
    return name
