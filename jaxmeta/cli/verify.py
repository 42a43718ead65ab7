"""`jaxmeta verify` runs the checks of the theory."""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

import jaxmeta as jm
from jaxmeta.cli.shared import AsJson, Seed, put, put_json, say

__all__ = ["verify"]

PACKAGE = "jaxmeta.theory"


def _theory() -> Any:
    """The checks: the wheel carries them inside; in a clone they stand beside the package."""
    folder = Path(jm.__file__).parent.parent / "theory"
    if importlib.util.find_spec(PACKAGE) is None and (folder / "__main__.py").is_file():
        spec = importlib.util.spec_from_file_location(
            PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        assert spec.loader is not None
        package = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
    return importlib.import_module(f"{PACKAGE}.__main__")


def _names() -> list[tuple[str, str]]:
    checks = _theory()
    return [(checks.name(each), each.CLAIM) for each in checks.select(())]


def verify(
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="These statements alone; see --list.",
            autocompletion=_names,
        ),
    ] = None,
    instances: Annotated[int, typer.Option(min=10, help="Of each statement.")] = 2000,
    seed: Seed = 0,
    list_: Annotated[
        bool, typer.Option("--list", help="Show names and claims, run nothing.")
    ] = False,
    figures: Annotated[
        Path | None, typer.Option(file_okay=False, metavar="DIR", help="Draw figures into DIR.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Check each statement of the paper against dense linear algebra on hard instances.

    Exit code 1 if a verdict is not the recorded one.
    """
    checks = _theory()
    names = [name for each in only or () for name in each.split(",")]
    try:
        statements = checks.select(names)
    except ValueError as error:
        raise ValueError(f"--only: {error}") from None
    if list_:
        claims = {checks.name(each): each.CLAIM for each in statements}
        if as_json:
            put_json(claims)
        else:
            for name, claim in claims.items():
                put(f"{name:<28}{claim}")
        return 0
    drawn: ModuleType | None = checks.import_figures() if figures else None
    options = {"instances": instances, "seed": seed}
    show = (say if sys.stderr.isatty() else lambda _: None) if as_json else put
    found = checks.report(show, only=names, **options)
    paths = []
    for path in drawn.draw_all(figures, **options) if drawn else ():
        paths.append(str(path))
        (show if as_json else put)(f"figure: {path}")
    if as_json:
        more = {
            "not_as_recorded": found.surprises,
            "undecided": found.undecided,
            "figures": paths,
        }
        text = checks.as_json(*found[:3], version=jm.__version__, **options)
        put_json(json.loads(text) | more)
    return int(bool(found.surprises))
