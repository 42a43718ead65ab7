"""Run attacks, each in a process of its own, keep their figures, and write the page."""

import argparse
import importlib
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FIGURES, PAGE = ROOT / "results" / "tried", ROOT / "docs" / "tried.md"
ATTACKS = {"files": 100_000, "kills": 100, "places": 20, "bounds": 1_000_000, "inputs": 300}
"""By the name of the module, how many times it tries each thing (files, bounds, inputs: in all)."""
TITLES = {"files": "Mutated files", "kills": "Kills", "places": "Full disks and shared caches",
          "bounds": "The bound chain", "inputs": "Other inputs"}  # fmt: skip


def attack(name: str, number: int, seed: int) -> dict[str, Any]:
    """Run one attack in this process."""
    start = time.perf_counter()
    found = importlib.import_module(f"{__package__}.{name}").run(number, seed)
    about = {"number": number, "seed": seed, "seconds": round(time.perf_counter() - start),
             "python": platform.python_version(), "system": platform.system()}  # fmt: skip
    return about | found


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Make a table of rows that may lack columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [names, ["---"] * len(names)]
    for row in rows:
        cells = [row.get(name, "") for name in names]
        lines.append([f"{x:,}" if isinstance(x, int) else str(x) for x in cells])
    return [f"| {' | '.join(line)} |" for line in lines]


def page() -> str:
    """Put the figures that are kept into a page."""
    lines = [
        "# What was tried",
        "",
        "Attacks on the library, each a script in `tests/attack/` that finds the same again by its",
        "seed. `make attack` runs them all and writes this page; `make test` runs a few of each.",
    ]
    for name, title in TITLES.items():
        if not (file := FIGURES / f"{name}.json").exists():
            continue
        found = json.loads(file.read_text())
        about = importlib.import_module(f"{__package__}.{name}").__doc__.strip()
        command = f"python -m tests.attack {name} --number {found['number']} --seed {found['seed']}"
        lines += ["", f"## {title}", "", about, "", f"    {command}", ""]
        lines += [f"{found['seconds']:,} s, Python {found['python']}, {found['system']}.", ""]
        lines += [*table(found["rows"]), ""]
        lines += [f"Faults: {len(found['faults'])}.", *(f"* {x}" for x in found["faults"][:20])]
    return "\n".join([*lines, ""])


def main() -> None:
    """Read the command, run what it names, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ATTACKS)}; all, if none is given")
    parser.add_argument("--number", type=int, help="how many times each thing is tried")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--json", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.names) - set(ATTACKS):
        parser.error(f"got {', '.join(unknown)}, expected some of {', '.join(ATTACKS)}")
    if given.json is not None:  # the process of one attack
        (name,) = given.names
        found = attack(name, given.number, given.seed)
        given.json.write_text(json.dumps(found, indent=1, default=str, ensure_ascii=False) + "\n")
        return
    faults = 0
    for name in () if given.page else given.names or ATTACKS:
        FIGURES.mkdir(parents=True, exist_ok=True)
        file = FIGURES / f"{name}.json"
        number = ATTACKS[name] if given.number is None else given.number
        own = ["--number", str(number), "--seed", str(given.seed), "--json", str(file)]
        subprocess.run([sys.executable, "-m", __package__, name, *own], cwd=ROOT, check=True)
        found = json.loads(file.read_text())
        faults += len(found["faults"])
        print(f"{name}: {found['seconds']} s, {len(found['faults'])} faults")
        print(*table(found["rows"]), *map(str, found["faults"][:20]), sep="\n")
    PAGE.write_text(page())
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
