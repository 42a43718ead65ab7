"""Put tables of results/ into the pages that quote them: no figure there is typed by hand.

    python -m experiments.notes             bring paper_notes.md and docs/ up to date
    python -m experiments.notes --check     say what is not, and exit with 1

A page has `<!-- results/table1/comparison.md -->` where a table belongs, and `<!-- end -->` after
it. What stands between them is that file.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from experiments import _record

PLACE = re.compile(r"<!-- (results/\S+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(page: str, root: Path) -> str:
    """A page with every file in its place."""

    def put(found: re.Match[str]) -> str:
        name = found.group(1)
        path = root / name
        if not path.exists():
            experiment = Path(name).parts[1]
            sys.exit(f"{name}: not there; run python -m experiments.{experiment} first.")
        return f"<!-- {name} -->\n\n{path.read_text(encoding='utf-8').strip()}\n\n<!-- end -->"

    return PLACE.sub(put, page)


def main(arguments: Sequence[str] | None = None, root: Path = _record.ROOT) -> None:
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    asked = parser.parse_args(arguments)
    old = [name for name in _record.PAGES if (root / name).exists()]
    stale = []
    for name in old:
        page = (root / name).read_text(encoding="utf-8")
        new = filled(page, root)
        if new != page:
            stale.append(name)
            if not asked.check:
                _record.write_text(root / name, new)
    if asked.check and stale:
        sys.exit(f"{', '.join(stale)}: not up to date; run python -m experiments.notes.")
    print(f"{'brought up to date' if stale else 'up to date'}: {', '.join(stale or old)}")


if __name__ == "__main__":
    main()
