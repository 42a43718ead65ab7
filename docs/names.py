"""The public names of the library, and where each of them is defined.

The reference in `api/` has an entry for each; the build and `tests/test_docs.py` fail if one is
missing.
"""

import ast
import functools
import hashlib
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import jaxmeta

ROOT = Path(__file__).parent.parent
EQUATIONS = re.compile(r"\(Eqs?\. ([\d, andto]*\d)")


def digest() -> str:
    """Of all code that cells may run: what was run of other code does not count."""
    found = hashlib.sha256()
    for folder in ("docs", "jaxmeta", "theory"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


def modules() -> list[str]:
    """All modules but those whose names begin with an underscore.

    The command has a page and its own help; the checks that a wheel carries have theirs.
    """
    found = (module.name for module in pkgutil.walk_packages(jaxmeta.__path__, "jaxmeta."))
    others = ("jaxmeta.cli", "jaxmeta.theory")
    public = (x for x in found if not x.rpartition(".")[2].startswith("_"))
    return ["jaxmeta", *(x for x in public if not x.startswith(others))]


def defined(module: ModuleType) -> list[str]:
    """What a module defines itself, at its top level, in order."""
    found = []
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found += [target.id for target in targets if isinstance(target, ast.Name)]
    return found


@functools.cache
def homes() -> dict[str, str]:
    """Every public name, with its module, to the name under which the reference has it.

    That is where it is defined, or the first room that offers what a private module defines.
    """
    public = {name: importlib.import_module(name) for name in modules()}
    entries = {
        f"{name}.{each}": (each, getattr(module, each))
        for name, module in public.items()
        for each in module.__all__
        if not inspect.ismodule(getattr(module, each))
    }
    first: dict[tuple[str, int], str] = {}
    for name, module in public.items():
        for each in set(defined(module)) & set(module.__all__):
            first[each, id(getattr(module, each))] = f"{name}.{each}"
    for full, (each, value) in entries.items():
        first.setdefault((each, id(value)), full)
    return {full: first[each, id(value)] for full, (each, value) in entries.items()}


def entries(module: str) -> list[tuple[str, str]]:
    """What the reference has of a module: how Sphinx calls its kind, and its name; in order."""
    found, own = importlib.import_module(module), set(homes().values())
    order = {name: place for place, name in enumerate(defined(found))}
    here = [each for each in found.__all__ if f"{module}.{each}" in own]
    return [
        (_kind(getattr(found, each)), f"{module}.{each}")
        for each in sorted(here, key=lambda each: order.get(each, -1))
    ]


def _kind(value: Any) -> str:
    if inspect.isclass(value):
        return "exception" if issubclass(value, Exception) else "class"
    return "function" if inspect.isfunction(inspect.unwrap(value)) else "data"


def equations() -> dict[int, list[str]]:
    """The paper's equations, and the functions whose docstrings say that they compute them."""
    found: dict[int, list[str]] = {}
    for full in sorted(set(homes().values())):
        module, _, each = full.rpartition(".")
        value = getattr(importlib.import_module(module), each)
        said = EQUATIONS.search(inspect.getdoc(value) or "") if callable(value) else None
        for number in map(int, re.findall(r"\d+", said[1]) if said else ()):
            found.setdefault(number, []).append(full)
    return dict(sorted(found.items()))


def verdicts() -> list[list[str]]:
    """The cells of the stored table of verdicts, line by line."""
    table = ROOT / "results" / "verdicts" / "table.md"
    lines = table.read_text(encoding="utf-8").splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
