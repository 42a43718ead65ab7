"""What may import what, read off the source, and what stands at the front door."""

import ast
import importlib
import inspect
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import jaxmeta

pytestmark = pytest.mark.one_leg

ROOT = pathlib.Path(__file__).parent.parent
LIBRARY = ROOT / "jaxmeta"

# A module imports from modules of lower layers alone. A room counts as one module: its files may
# import each other.
LAYERS = {
    "_rows": -1,
    "_brief": 0,
    "_checks": 0,
    "progress": 0,
    "_types": 0,
    "_files": 1,
    "linalg": 1,
    "_twofold": 2,
    "eigen": 2,
    "nested": 2,
    "optimise": 2,
    "spectral": 3,
    "noise": 4,
    "pip": 4,
    "shrinkage": 4,
    "bounds": 5,
    "crossvalidation": 5,
    "dimension": 5,
    "equalise": 5,
    "quadratic": 5,
    "weights": 5,
    "_views": 5,
    "combine": 6,
    "several": 6,
    "covariance": 6,
    "prepare": 6,
    "affine": 7,
    "released": 7,
    "similarity": 7,
    "spelling": 7,
    "weightings": 8,
    "plans": 9,
    "files": 10,
    "text": 10,
    "evaluate": 11,
    "methods": 11,
    "adapters": 12,
    "diagnosis": 12,
    "mesh": 12,
    "plot": 13,
    "__init__": 14,
    "cli": 15,
    "__main__": 16,
}
MODULES = sorted(LIBRARY.rglob("*.py"))
CLIENTS = sorted(
    path for name in ("theory", "experiments", "benchmarks") for path in (ROOT / name).rglob("*.py")
)
# What a reader of the paper or a practitioner looks for in the first hour.
EARLY = {
    "Spectrum", "align", "aligned_weights", "bound_terms", "concatenate", "debias", "decompose",
    "dimension_weights", "embed", "exact_weights", "gradient_weights", "noise_std", "pip_curve",
    "pip_loss", "pip_quadratic", "read_vectors", "rotation_invariant", "select_dimension",
    "shrinkage_weights", "source_weights", "spectrum_of", "usvt", "write_vectors",
}  # fmt: skip


def unit(path):
    """The module, or the room, that a file of the library belongs to."""
    return path.relative_to(LIBRARY).with_suffix("").parts[0]


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(path):
    """Pairs of a module and a name in it (None: the module itself) that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((node.module, alias.name) for alias in node.names)


def of_library(path):
    """The same of the library alone, with modules that are imported from their package resolved."""
    for module, name in imports(path):
        if module.split(".")[0] == "jaxmeta":
            inner = f"{module}.{name}"
            try:
                found = importlib.util.find_spec(inner)
            except ModuleNotFoundError:  # the parent is no package
                found = None
            yield (module, name) if found is None else (inner, None)


def layer(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def test_every_module_has_a_layer():
    assert {unit(path) for path in MODULES} == set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_come_from_lower_layers(path):
    own = unit(path)
    for module, _ in of_library(path):
        used = layer(module)
        inside = path.parent != LIBRARY and used == own
        assert LAYERS[used] < LAYERS[own] or inside, f"{own} imports {used}"


@pytest.mark.parametrize("path", [*MODULES, *CLIENTS], ids=name_of)
def test_imported_names_are_public(path):
    for module, name in of_library(path):
        if name is not None:
            public = importlib.import_module(module).__all__
            assert name in public, f"{name_of(path)} imports {name} from {module}"


@pytest.mark.parametrize("path", CLIENTS, ids=name_of)
def test_clients_use_public_modules_alone(path):
    for module, _ in of_library(path):
        assert not any(part.startswith("_") for part in module.split(".")), module
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("jaxmeta."):
            assert not node.attr.startswith("_") or node.attr == "__version__", ast.unparse(node)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_file_is_long(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_the_library_leaves_the_configuration_of_jax_alone(path):
    tree = ast.parse(path.read_text())
    named = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {f"{module}.{name}" for module, name in imports(path)}
    named |= {module for module, _ in imports(path)}
    for forbidden in ("config", "enable_x64"):
        assert not any(name.startswith("jax") and forbidden in name.split(".") for name in named), (
            f"{name_of(path)} touches jax.{forbidden}"
        )


def test_there_are_clients():
    assert any(path.parent.name == "theory" for path in CLIENTS)


def test_front_door():
    assert dir(jaxmeta) == sorted(jaxmeta.__all__)
    assert set(jaxmeta.__all__) >= EARLY
    assert len(jaxmeta.__all__) <= 55
    for name in jaxmeta.__all__:
        assert getattr(jaxmeta, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = jaxmeta.nothing


def test_type_checkers_see_the_same_names():
    """Names of the rooms stand twice: for type checkers, and to be imported when asked for."""
    (block,) = [
        node
        for node in ast.parse((LIBRARY / "__init__.py").read_text()).body
        if isinstance(node, ast.If)
    ]
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    rooms = {name: "jaxmeta" for name in jaxmeta._ROOMS if name in jaxmeta.__all__}
    assert seen == rooms | {name: f"jaxmeta.{room}" for name, room in jaxmeta._HOMES.items()}


def test_no_function_hides_a_module():
    packages = [
        "jaxmeta",
        *(f"jaxmeta.{room}" for room in ("text", "files", "methods", "evaluate", "adapters")),
    ]
    for package in map(importlib.import_module, packages):
        for _, name, _ in pkgutil.iter_modules(package.__path__):
            assert inspect.ismodule(getattr(package, name, package)), f"{package.__name__}.{name}"


def test_importing_the_library_imports_little():
    code = """
import sys, jaxmeta
print(*{"jax", "numpy"} & set(sys.modules))
from jaxmeta import (Spectrum, WEIGHTINGS, aligned_weights, bound_terms, exact_weights, moments,
                     pip_loss, rotation_invariant, select_dimension, standardise)
print(*sorted(set(sys.modules) & {"matplotlib", "sklearn", "gensim", "typer", "rich", "optax",
                                  "scipy.sparse", "scipy.stats", "jax.experimental.sparse"}))
print(jaxmeta.evaluate.__name__)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["", "", "jaxmeta.evaluate"]
