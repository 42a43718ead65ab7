"""What may import what, read off the source."""

import ast
import pathlib

import pytest

import jaxmeta

ROOT = pathlib.Path(__file__).parent.parent
LIBRARY = ROOT / "jaxmeta"

# A module imports from modules of lower layers, and some from one that is beside it.
LAYERS = {
    "_checks": 0,
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
    "pip": 3,
    "bounds": 3,
    "weights": 4,
    "quadratic": 4,
    "combine": 5,
    "sources": 5,
    "__init__": 6,
}
BESIDE = {
    ("bounds", "pip"),
    ("counting", "corpus"),
    ("eigen", "linalg"),
    ("noise", "spectral"),
    ("optimise", "linalg"),
}

MODULES = sorted(LIBRARY.rglob("*.py"))
CLIENTS = sorted(
    path for name in ("theory", "experiments", "benchmarks") for path in (ROOT / name).rglob("*.py")
)


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
    assert {path.stem for path in MODULES} == set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_come_from_lower_layers(path):
    for used in modules_used(path):
        lower = LAYERS[used] < LAYERS[path.stem]
        assert lower or (path.stem, used) in BESIDE, f"{path.stem} imports {used}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_the_library_leaves_the_configuration_of_jax_alone(path):
    tree = ast.parse(path.read_text())
    named = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {f"{module}.{name}" for module, name in imports(path)}
    named |= {module for module, _ in imports(path)}
    for forbidden in ("config", "enable_x64"):
        assert not any(name.startswith("jax") and forbidden in name.split(".") for name in named), (
            f"{path.stem} touches jax.{forbidden}"
        )


@pytest.mark.parametrize("path", CLIENTS, ids=lambda path: f"{path.parent.name}.{path.stem}")
def test_clients_use_public_names_alone(path):
    for module, name in imports(path):
        if module.split(".")[0] == "jaxmeta":
            assert module == "jaxmeta", f"{path.name} imports from {module}"
            public = name is None or (not name.startswith("_") and hasattr(jaxmeta, name))
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
