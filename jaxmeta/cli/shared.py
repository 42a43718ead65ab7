"""What commands share: arguments, progress, tables, and a look at what is to be written."""

import difflib
import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

import jaxmeta as jm

__all__ = [
    "AsJson",
    "Cut",
    "Files",
    "Force",
    "MethodName",
    "Missing",
    "Numbers",
    "Out",
    "Seed",
    "Words",
    "choice",
    "choices",
    "cut",
    "dtype_of",
    "method_named",
    "outputs",
    "progress",
    "put",
    "put_json",
    "read_aligned",
    "refuse",
    "say",
    "stems",
    "table",
    "vocabulary_of",
]

AUTO = 0.05  # of the PIP norm: what the smallest k may change

_FILE: dict[str, Any] = {"exists": True, "dir_okay": False, "show_default": False}
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="Vectors: .txt, .vec, .glove, .bin, packed or not; .npz, .npy, .safetensors.",
        **_FILE,
    ),
]
Out = Annotated[Path, typer.Option("-o", "--out", help="The result: its name tells the format.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
Words = Annotated[
    str,
    typer.Option(
        "--vocabulary",
        metavar="union|intersection|FILE",
        help="The words of the result; a file has one on each line.",
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        metavar="zero|mean|predict",
        help="What stands for words that a file lacks.",
        autocompletion=lambda: ["zero", "mean", "predict"],
    ),
]
Cut = Annotated[
    str,
    typer.Option(
        "--k",
        metavar="all|auto|K|SHARE",
        help="Dimensions: all (for SVD and the like the paper's choice), a number, or the fewest"
        f" that change inner products by no more than a share, such as 0.01; auto is {AUTO}.",
    ),
]
Numbers = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        metavar="float16|float32|float64",
        help="Of the numbers of the result.",
        autocompletion=lambda: ["float16", "float32", "float64"],
    ),
]
MethodName = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help="How files are combined: `jaxmeta combine --list` has all names.",
        autocompletion=lambda: [(name, each.summary) for name, each in jm.METHODS.items()],
    ),
]
Seed = Annotated[int, typer.Option(help="Of what is random.")]


def say(text: str) -> None:
    """Write to stderr, where all goes that is no result."""
    print(text, file=sys.stderr, flush=True)


def progress() -> Callable[[str, float], None]:
    """A bar on a terminal, and nothing elsewhere."""
    return jm.ProgressBar() if sys.stderr.isatty() else jm.progress.silent


def put(text: str = "") -> None:
    """Write a line of results."""
    print(text, flush=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table of results: numbers, which are strings already, stand at the right."""
    # What is no terminal has no width, and nothing may be cut off there.
    console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False)
    shown = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    rows = [tuple(map(str, row)) for row in rows]
    for at, name in enumerate(columns):
        cells = [row[at] for row in rows if row[at]]
        right = bool(cells) and all(cell[0] in "-?0123456789" for cell in cells)
        shown.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*map(Text, row))
    with console.capture() as captured:
        console.print(shown)
    put("\n".join(line.rstrip() for line in captured.get().splitlines()))


def put_json(document: Any) -> None:
    """Write one JSON document, with null for what is not a number."""
    put(json.dumps(_plain(document), indent=1, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def refuse(name: str, got: str, expected: str, do: str) -> NoReturn:
    """Raise in the wording of the library, which is not imported before it is needed."""
    from jaxmeta._checks import fail

    fail(name, got, expected, do)


def choice(option: str, value: str, names: Collection[str], more: str = "") -> Any:
    """The one of these names that is meant; `more` is the command that lists them."""
    from jaxmeta._checks import named

    with suppress(ValueError):
        return named(option, value, names)
    plain = {name.lower(): name for name in names}
    near = difflib.get_close_matches(value.lower(), plain, n=1)
    expected = f"one of those that `{more}` lists" if more else ", ".join(names)
    do = f"the nearest is {plain[near[0]]!r}" if near else "choose one"
    refuse(option, repr(value), expected, do)


def choices(
    option: str, values: Sequence[str], names: Collection[str], more: str = ""
) -> list[str]:
    """The same of several, which may stand in one argument with commas between them."""
    given = [each for value in values for each in value.split(",")]
    return [choice(option, each, names, more) for each in given]


def method_named(text: str) -> str:
    """The method that --method asks for."""
    return choice("--method", text, jm.METHODS, "jaxmeta combine --list")


def dtype_of(text: str | None) -> str | None:
    """The kind of numbers that --dtype asks for."""
    return text and choice("--dtype", text, ("float16", "float32", "float64"))


def cut(text: str) -> int | float | None:
    """The number of dimensions, or the share, that --k asks for."""
    if text in ("all", "auto"):
        return None if text == "all" else AUTO
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    refuse("--k", repr(text), "all, auto, a number or a share", "pass one, such as 0.05")


def vocabulary_of(text: str) -> Any:
    """What --vocabulary asks for: a name, or the words of a file."""
    if text in ("union", "intersection"):
        return text
    if not Path(text).is_file():
        expected = "union, intersection or a file with a word on each line"
        refuse("--vocabulary", f"{text!r}, which is no file", expected, "pass one of them")
    return tuple(filter(None, Path(text).read_text(encoding="utf-8").splitlines()))


def outputs(written: Sequence[Path | None], read: Sequence[Path | str], force: bool) -> None:
    """Raise if a file that is to be written is an input or there already, or is named twice."""
    inputs, seen = {Path(path).resolve() for path in read}, set[Path]()
    for path in filter(None, written):
        place = path.resolve()
        # The words of a .npy file stand in one beside it.
        both = [place, *([place.with_suffix(".words.txt")] if path.suffix == ".npy" else [])]
        if inputs & set(both):
            refuse(str(path), "an input", "another file", "inputs are never replaced")
        if seen & set(both):
            refuse(str(path), "two results", "a file for each", "choose another name")
        there = [each.name for each in both if each.exists()]
        if there and not force:
            do = "pass --force to replace it, or choose another name"
            refuse(str(path), f"{there[0]}, which is there", "a new file", do)
        seen |= set(both)


def stems(files: Sequence[Path]) -> list[str]:
    """Names of sources: those of the files, with what tells them apart if they are the same."""
    short = [path.name.partition(".")[0] or path.name for path in files]
    if len(set(short)) < len(short):
        short = [path.name for path in files]
    if len(set(short)) < len(short):
        short = [str(path) for path in files]
    return short


def read_aligned(
    files: Sequence[Path], vocabulary: Any, missing: Any = "zero", names: Sequence[str] = ()
) -> Any:
    """The files, in memory, brought to the same words."""
    found = [jm.read_vectors(path, progress=progress()) for path in files]
    return jm.align(
        found, vocabulary=vocabulary, missing=missing, names=names or stems(files),
        progress=progress(),
    )  # fmt: skip
