"""The command `jaxmeta`: what is there is said by `jaxmeta --help`.

A module for a command or two, which take arguments apart and show results; all numbers are the
library's. typer and rich come with the extra: `pip install "jaxmeta[cli]"`.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, by the arguments of the process if none are given; return its exit code."""
    absent = [name for name in ("typer", "rich") if importlib.util.find_spec(name) is None]
    if absent:
        needs = " and ".join(absent)
        print(f'jaxmeta: the command needs {needs}: pip install "jaxmeta[cli]"', file=sys.stderr)
        return 2
    try:
        app = importlib.import_module("jaxmeta.cli.app")
        return app.run(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return 130
