"""The section of the demo's page on what holds of the paper."""

import math
from typing import Any

import numpy as np

from experiments import _demo_figures, _page
from experiments._demo_figures import Rows, column, where
from experiments._page import Section, element

KINDS = {
    "printed": ("Statements that the paper prints", "fails"),
    "reading": ("What its text suggests and does not state", "not so"),
    "ours": ("Statements of this library", "not so"),
}
# Quotations have the paper's formulae as they are typed.
FORMULAE = {
    r"\sum_{j=1}^N": "Σⱼ", r"\tilde\lambda": "λ̃", r"\sigma": "σ", r"\sqrt n": "√n", r"\alpha": "α",
    r"\le": "≤", "_i": "ᵢ", "_j": "ⱼ", "$": "",
}  # fmt: skip


def against_the_record(row: dict[str, Any]) -> bool:
    """Whether a form that holds failed, or a statement that is on record to hold."""
    return row["corrected"] > 0 or (row["violations"] > 0 and row["recorded"] == "True")


def _undecided(row: dict[str, Any]) -> bool:
    return row["violations"] == 0 and row["recorded"] == "False"


def section(statements: Rows, examples: Rows, bounds: Rows) -> Section:
    """Verdicts, and where the printed theorem fails."""
    printed = where(statements, kind="printed")
    failing = [row for row in printed if row["violations"] > 0]
    undecided = [row["name"] for row in statements if _undecided(row)]
    surprises = [row["name"] for row in statements if against_the_record(row)]
    instances = statements[0]["instances"]
    message = (
        f"of {len(printed)} statements that the paper prints {len(failing)} fail on some of "
        f"{instances:.0f} instances, and {len(printed) - len(failing)} on none. "
    )
    message += (
        f"Not as recorded: {', '.join(surprises)}."
        if surprises
        else f"All {len(statements)} verdicts are as recorded."
        if not undecided
        else f"So few instances leave {', '.join(undecided)} undecided; no other verdict is unlike "
        "the record."
    )
    ratios = column(bounds, "printed"), column(bounds, "corrected")
    below = [int(np.sum(x < 1 - 1e-9)) for x in ratios]
    title = (
        f"The printed bound is below the true loss on {below[0]} of {len(bounds)} instances, the "
        f"corrected one on {below[1]}"
    )
    last = examples[-1]
    note = (
        f"Left, the counterexample: source 2 holds what source 1 should, and source 1 nothing. At "
        f"k = {last['k']:.0f} the loss is {last['loss'] / last['printed']:.1f} times the printed "
        "bound. Right, bounds over losses on random instances, one to five sources."
    )
    panels = [_demo_figures.counterexample(examples), _demo_figures.tightness(bounds)]
    parts = [
        element(
            "p",
            "Each statement is set against dense linear algebra on hard instances: random, "
            "aligned, degenerate, adversarial. Only what is printed can fail; where it does, the "
            "form that holds is tested as well, and its proof is in the file that is named.",
        ),
        _page.figure(title, panels, note),
    ]
    for kind, (head, wrong) in KINDS.items():
        own = where(statements, kind=kind)
        if own:
            rows = [_statement(row, wrong) for row in own]
            heads = ("verdict", "statement", "section", "file")
            table = _page.cards(heads, rows, caption=f"{instances:.0f} instances of each")
            count = sum(row["violations"] == 0 for row in own)
            is_open = " open" if kind == "printed" else ""
            parts.append(
                f"<details{is_open}><summary>{head}: {count} of {len(own)} hold on all instances"
                f"</summary>{table}</details>"
            )
    return Section("verdicts", "What holds", message, parts)


def _statement(row: dict[str, Any], wrong: str) -> list[str]:
    """Verdict, sentence, section and file of a statement."""
    if row["violations"] == 0:
        mark = (
            element("span", "? undecided", class_="bad") + "<br>none failed of so few"
            if _undecided(row)
            else element("span", "✓ holds", class_="good")
        )
    else:
        worst = f", by up to {_size(row['worst'])}" if math.isfinite(row["worst"]) else ""
        mark = element("span", f"✗ {wrong}", class_="bad") + (
            f"<br>on {row['violations']:.0f} of {row['instances']:.0f}{worst}"
        )
    words = row["quote"]
    for typed, shown in FORMULAE.items():
        words = words.replace(typed, shown)
    quote = f"<q>{_page.prose(words)}</q><br>" if words else ""
    place = _plain(row["where"])
    return [
        mark,
        f"{quote}{element('span', 'tested: ' + row['claim'], class_='soft')}",
        _page.prose(f"section {place}" if place else ""),
        element("code", f"theory/{row['name']}.py"),
    ]


def _size(violation: float) -> str:
    return f"{violation:.0%}" if violation < 10 else f"a factor of {1 + violation:,.0f}"


def _plain(value: Any) -> str:
    """What a table read as a number, as it was written."""
    return f"{value:g}" if isinstance(value, float) else str(value)
