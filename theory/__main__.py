"""Print the verdicts: `python -m theory`; `--help` lists the options."""

import argparse
import importlib
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from jaxmeta.files import write_whole

from . import __doc__ as description
from . import counterexamples, name, run, select
from .verdict import Counterexample, Origin, Tally, Verdict

HEADER = (
    f"{'statement':<28}{'kind':<9}{'instances':>9}  {'as it stands':<28}{'corrected':<22}"
    f"bound / loss\n{'':<28}{'':<9}{'':>9}  {'violations, worst':<28}{'violations, worst':<22}"
    "median [range]"
)
# Only a statement that the paper prints can fail it.
WRONG = {"printed": "FAILS", "reading": "not so", "ours": "not so"}
DECIDES = 200  # instances: with fewer, a form that fails on few of them may hold on all drawn


def describe(tally: Tally, kind: str = "printed") -> str:
    """Verdict, count and size of the violations."""
    if not tally.violations:
        return "holds" + (f"      ({tally.worst:.0e})" if tally.worst else "")
    return f"{WRONG[kind]} {tally.violations:>4} ({size(tally)})"


def size(tally: Tally) -> str:
    """The worst violation."""
    return f"{tally.worst:+.0%}" if math.isfinite(tally.worst) else "without limit"


def row(verdict: Verdict, origin: Origin) -> str:
    """One line of the table."""
    range_ = verdict.tightness
    tightness = f"{range_.median:.2f} [{range_.low:.2f}, {range_.high:.3g}]" if range_ else ""
    return (
        f"{verdict.name:<28}{origin.kind:<9}{verdict.instances:>9}  "
        f"{describe(verdict.printed, origin.kind):<28}{describe(verdict.corrected):<22}{tightness}"
    )


def as_markdown(verdicts: list[Verdict], origins: dict[str, Origin]) -> str:
    """The table for pages."""
    lines = ["| sentence | where | kind | what is tested | functions | `theory/` | as it stands |"]
    lines.append("|---" * 7 + "|")
    for verdict in verdicts:
        kind, where, quote, functions = origins[verdict.name]
        tally = verdict.printed
        stands = "holds"
        if tally.violations:
            how = "fails" if kind == "printed" else "not so"
            by = "" if tally.worst == math.inf else f", by up to {tally.worst:.0%}"
            stands = f"{how} on {tally.violations:,} of {verdict.instances:,}{by}"
        cells = (
            f"“{quote}”" if quote else "", where, kind, verdict.claim.replace("|", "\\|"),
            ", ".join(f"`{name}`" for name in functions), f"`{verdict.name}`", stands,
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def commit() -> str | None:
    """What is checked out, with a mark if files were changed; None outside of a repository."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40"]
    try:
        found = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def as_json(
    verdicts: list[Verdict],
    found: dict[str, Counterexample],
    origins: dict[str, Origin],
    **run: Any,
) -> str:
    """The table for machines, with what it was made by."""
    rows = [
        verdict._asdict()
        | origins[verdict.name]._asdict()
        | {
            "printed": verdict.printed._asdict(),
            "corrected": verdict.corrected._asdict(),
            "tightness": verdict.tightness._asdict() if verdict.tightness else None,
            "counterexample": found[verdict.name]._asdict() if verdict.name in found else None,
        }
        for verdict in verdicts
    ]
    return json.dumps(run | {"statements": rows}, indent=1, default=float) + "\n"


def write(path: Path, text: str) -> None:
    """Write whole or not at all."""
    with write_whole(path) as part:
        part.write_text(text)


class Outcome(NamedTuple):
    """What a run of the checks came to."""

    verdicts: list[Verdict]
    examples: dict[str, Counterexample]
    origins: dict[str, Origin]
    surprises: list[str]
    """Statements whose verdict is not the recorded one."""
    undecided: list[str]
    """Statements that fail on few instances, of which too few were drawn to see one."""


def report(say: Callable[[str], Any], *, instances: int, seed: int, only: Sequence[str]) -> Outcome:
    """Run the checks, and say line by line what they find."""
    statements, start = select(only), time.perf_counter()
    origins = {name(s): s.ORIGIN for s in statements}
    say(HEADER)
    verdicts = []
    for verdict in run(instances=instances, seed=seed, only=only):
        say(row(verdict, origins[verdict.name]))
        verdicts.append(verdict)

    say("\nCounterexamples (truth | as it stands | corrected):")
    examples = counterexamples(only)
    for title, example in examples.items():
        say(f"  {title}: {example.setting}")
        say(f"    {example.truth:.4g} | {example.printed:.4g} | {example.corrected:.4g}")

    recorded = {name(s): s.PRINTED_HOLDS for s in statements}
    unlike = [v for v in verdicts if (v.printed.violations == 0) != recorded[v.name]]
    few = instances < DECIDES
    # No violation among few instances is no news of a form that fails: its counterexample stands.
    undecided = [v.name for v in unlike if few and v.printed.violations == 0]
    surprises = [
        v.name
        for v in verdicts
        if v.corrected.violations or (v in unlike and v.name not in undecided)
    ]
    stand = f"not as recorded: {', '.join(surprises)}" if surprises else "all verdicts as recorded"
    say(f"\n{len(verdicts)} statements in {time.perf_counter() - start:.0f} s; {stand}")
    if undecided:
        say(
            f"{instances} instances cannot decide {', '.join(undecided)}, which fail on"
            f" few: draw {DECIDES} or more (the counterexamples above stand)"
        )
    return Outcome(verdicts, examples, origins, surprises, undecided)


def import_figures() -> ModuleType:
    """The module that draws, asked for before the work starts: matplotlib is an extra."""
    try:
        return importlib.import_module(".figures", __package__)
    except ModuleNotFoundError as error:
        do = "pip install 'jaxmeta[plot]'"
        raise ModuleNotFoundError(f"--figures needs {error.name}; {do}", name=error.name) from error


def main() -> int:
    """Run all checks; exit status 1 if a verdict is not the recorded one."""
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=description)
    parser.add_argument("--instances", type=int, default=2000, help="per statement (default 2000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="print names and claims, run nothing")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="run these alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts to FILE")
    parser.add_argument("--table", type=Path, metavar="FILE", help="and, as Markdown, to FILE")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="draw the figures into DIR")
    arguments = parser.parse_args()
    if arguments.instances < 10:
        parser.error(f"--instances: got {arguments.instances}, expected at least 10")
    try:
        statements = select(arguments.only)
    except ValueError as error:
        parser.error(f"--only: {error}")
    if arguments.list:
        for statement in statements:
            print(f"{name(statement):<28}{statement.CLAIM}")
        return 0
    try:
        figures = import_figures() if arguments.figures else None
    except ModuleNotFoundError as error:
        parser.error(str(error))

    made_by, options = commit(), {"instances": arguments.instances, "seed": arguments.seed}
    found = report(partial(print, flush=True), only=arguments.only, **options)
    if arguments.json:
        run_of = {"commit": made_by, "seed": arguments.seed}
        write(arguments.json, as_json(*found[:3], **run_of))
        print(f"verdicts: {arguments.json}")
    if arguments.table:
        write(arguments.table, as_markdown(found.verdicts, found.origins))
        print(f"table: {arguments.table}")
    if figures:
        for path in figures.draw_all(arguments.figures, **options):
            print(f"figure: {path}", flush=True)
    return bool(found.surprises)


if __name__ == "__main__":
    sys.exit(main())
