"""The commands together, and what becomes of errors, warnings and Ctrl-C."""

import traceback
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

import jaxmeta as jm
from jaxmeta.cli import combine, dimension, look, score, train, verify
from jaxmeta.cli.shared import say

__all__ = ["app", "run"]

app = typer.Typer(
    help="Combine vectors of words, and check the theory of meta-embeddings.",
    epilog="Exit codes: 0 all is well; 1 a check failed (a verdict is not as recorded, data is not"
    " there); 2 wrong usage or bad input; 3 a fault of jaxmeta itself; 130 Ctrl-C. Nothing is left"
    " half-written. Results go to stdout, all else to stderr."
    "\n\nExample: jaxmeta combine first.bin second.txt.gz -o both.npz",
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
EXAMPLES: dict[Callable[..., Any], str] = {
    verify.verify: "jaxmeta verify --only theorem1,lemma1 --instances 200",
    combine.combine: "jaxmeta combine first.bin second.txt.gz -o both.npz --k auto"
    " --save-plan both.plan --report both.html",
    combine.apply: "jaxmeta apply both.plan new1.bin new2.txt.gz -o new.npz",
    look.inspect: "jaxmeta inspect first.bin second.txt.gz",
    look.compare: "jaxmeta compare first.bin second.txt.gz both.npz --json",
    look.neighbours: "jaxmeta neighbours bank first.bin second.txt.gz --count 5",
    train.train: "jaxmeta train corpus.txt.gz -o meta.npz --signal GloVe,LSA --size 5000"
    " --cache steps",
    dimension.dimension: "jaxmeta dimension first.bin second.txt.gz --plot curve.png",
    score.evaluate: "jaxmeta evaluate first.bin both.npz --task MEN,SimLex-999 --common",
    score.data: "jaxmeta data MEN --fetch --folder data",
}
for command, example in EXAMPLES.items():
    app.command(epilog=f"Example: {example}")(command)


def _version(wanted: bool) -> bool:
    if wanted:
        print(f"jaxmeta {jm.__version__}")
        raise typer.Exit()
    return wanted


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where errors come from; for every command.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Run a command, say in a line or two what went wrong, if something did; return the code."""
    debug = "--debug" in arguments
    given = [each for each in arguments if each != "--debug"] or ["--help"]
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: say(f"warning: {message}")
        try:
            return app(given, standalone_mode=False, prog_name="jaxmeta") or 0
        except typer.Abort:
            return 130
        except Exception as error:
            if debug:
                traceback.print_exc()
            message, code = _explained(error)
            say(f"error: {message}")
            return code


def _explained(error: Any) -> tuple[str, int]:
    """What went wrong, and the exit code."""
    if hasattr(error, "format_message"):  # usage, whichever click this typer has
        path = error.ctx.command_path if getattr(error, "ctx", None) else "jaxmeta"
        return f"{error.format_message()}\n{path} --help shows how it is used", 2
    if isinstance(error, MemoryError):
        return "not enough memory; choose fewer words, by --vocabulary FILE", 2
    if isinstance(error, ValueError | OSError | ImportError):
        return str(error), 2
    do = "this is a fault of jaxmeta or of what it runs on, and --debug shows where"
    return f"{type(error).__name__}: {error}\n{do}", 3
