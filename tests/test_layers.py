"""What may import what, read off the source."""

import ast
import importlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parent.parent
LIBRARY = ROOT / "jaxmeta"

# A module imports from modules of lower layers, and some from one that is beside it. A package
# counts as one: its files may import each other.
LAYERS = {
    "_checks": 0,
    "_decimal": 0,
    "_files": 0,
    "progress": 0,
    "linalg": 1,
    "eigen": 1,
    "optimise": 1,
    "corpus": 1,
    "counting": 1,
    "synthetic": 1,
    "spectral": 2,
    "noise": 2,
    "signals": 2,
    "vectors": 2,
    "alignment": 3,
    "merge": 4,
    "pip": 3,
    "bounds": 3,
    "weights": 4,
    "quadratic": 4,
    "autoencode": 5,
    "combine": 5,
    "sources": 5,
    "diagnosis": 6,
    "locally_linear": 6,
    "one_ton": 6,
    "prepare": 6,
    "evaluate": 7,
    "methods": 7,
    "__init__": 8,
}
BESIDE = {
    ("bounds", "pip"),
    ("counting", "corpus"),
    ("eigen", "linalg"),
    ("noise", "spectral"),
    ("optimise", "linalg"),
}

PUBLIC = {name: importlib.import_module(name) for name in ("jaxmeta", "jaxmeta.evaluate")}
MODULES = sorted(LIBRARY.rglob("*.py"))
CLIENTS = sorted(
    path for name in ("theory", "experiments", "benchmarks") for path in (ROOT / name).rglob("*.py")
)


def unit(path):
    """The module, or the package, that a file of the library belongs to."""
    return path.relative_to(LIBRARY).with_suffix("").parts[0]


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def imports(path):
    """Pairs of a module and a name in it (None: the module itself) that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from ((node.module, alias.name) for alias in node.names)


def modules_used(path):
    """Modules of the library that a file imports, or imports a name from."""
    for module, name in imports(path):
        if module == "jaxmeta":
            yield name if name in LAYERS else "__init__"
        elif module.startswith("jaxmeta."):
            yield module.split(".")[1]


def test_every_module_has_a_layer():
    assert {unit(path) for path in MODULES} == set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_come_from_lower_layers(path):
    own = unit(path)
    for used in modules_used(path):
        allowed = LAYERS[used] < LAYERS[own] or (own, used) in BESIDE
        assert allowed or (path.parent != LIBRARY and used == own), f"{own} imports {used}"


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


@pytest.mark.parametrize("path", CLIENTS, ids=name_of)
def test_clients_use_public_names_alone(path):
    for module, name in imports(path):
        if module.split(".")[0] == "jaxmeta":
            assert module in PUBLIC, f"{path.name} imports from {module}"
            public = name is None or (not name.startswith("_") and hasattr(PUBLIC[module], name))
            assert public, f"{path.name} imports {name}"
    attributes = [
        node.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "jaxmeta"
    ]
    private = [name for name in attributes if name.startswith("_") and name != "__version__"]
    assert not private, f"{path.name} uses {private}"


def test_there_are_clients():
    assert any(path.parent.name == "theory" for path in CLIENTS)
