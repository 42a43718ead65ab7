"""The page of the demo, and its story for the terminal, from the tables of a run.

Every number comes from a table, and sentences that compare are chosen by the numbers.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import _demo_figures, _demo_verdicts, _page, _record
from experiments._demo_figures import Rows, column, where
from experiments._demo_text import (
    AVERAGED,
    DENOISED,
    NAMES,
    ORACLE,
    PLANS,
    POOLED,
    SINGLE,
    TOGETHER,
    WEIGHTS,
    planned,
    refitted,
)
from experiments._page import Column, Section, element
from jaxmeta import WEIGHTINGS

LABELS = {
    ORACLE: "best weights (oracle)",
    SINGLE: "long corpus alone",
    **{name: f"weights: {name}" for name in WEIGHTS},
    AVERAGED: "signals averaged",
    DENOISED: "long corpus, equalised",
    POOLED: "all text, equalised",
}
ABOUT = {
    ORACLE: "knows the ideal: no concatenation of these sources is better",
    SINGLE: "the k leading directions, as observed",
    **{name: WEIGHTINGS[name].summary for name in WEIGHTS},
    AVERAGED: "by precision, then decomposed, with weights for the noise that is left",
    DENOISED: "its estimated ideal, whose directions are not the observed ones",
    POOLED: "the estimated ideal of one source of all three corpora",
}
SIGMAS = {"halves": "two halves", "nested": "nested parts"}
NEXT = """\
jaxmeta combine glove.txt news.bin -o meta.npz --k auto --report meta.html
jaxmeta --help                            # apply, inspect, compare, train, evaluate and more
python -m theory                          # all statements, 2,000 instances each
python -m experiments.known_ideal         # nearer to the ideal as the corpus grows
python -m experiments.corpus_to_sources   # your corpora, below the folder in JAXMETA_DATA
python -m experiments.weights_vs_oracle   # weights and k against the optimum
make test                                 # everything, in 64 and in 32 bit"""
OWN = """\
import jaxmeta as jm
files = [jm.read_vectors(name) for name in ("glove.txt", "news.bin")]
both = jm.align(files, vocabulary="union", missing="predict")
jm.write_vectors("meta.npz", (both.words, jm.meta_embedding("default", both.sources)))"""


class Made(NamedTuple):
    """What a run comes to."""

    story: list[str]
    """Lines for the terminal."""
    page: str
    as_recorded: bool
    """Whether no verdict is against the record."""


def make(folder: Path) -> Made:
    """Read the tables of a run, and say what is in them."""
    tables = {path.stem: _record.read_table(path) for path in folder.glob("*.csv")}
    record = json.loads((folder / "provenance.json").read_text())
    config = record["config"]
    sections = [
        _demo_verdicts.section(tables["statements"], tables["examples"], tables["bounds"]),
        _sources(tables["noises"], config),
        _spectra(tables["noises"], tables["values"], config["text"]["rank"]),
        _dimensions(tables["noises"], tables["losses"]),
        _weights(tables["uses"]),
        _plan(tables["applied"], tables["plans"]),
    ]
    story = [f"{section.title}: {section.message}" for section in sections]
    parts = [_opening(record, tables, sections)]
    for section in sections:
        parts += [
            f'<section id="{section.name}">',
            element("h2", section.title),
            element("p", section.message[0].upper() + section.message[1:], class_="lead"),
            *section.parts,
            "</section>",
        ]
    parts += [_next(), _footer(record)]
    wrong = [row["name"] for row in tables["statements"] if _demo_verdicts.against_the_record(row)]
    return Made(story, _page.page("jaxmeta: what holds, and what it does", parts), not wrong)


def _opening(record: dict[str, Any], tables: Mapping[str, Rows], sections: list[Section]) -> str:
    statements = tables["statements"]
    printed = where(statements, kind="printed")
    failing = sum(row["violations"] > 0 for row in printed)
    best, ratio = _means(tables["uses"], "ratio")[0]
    plan = planned(_best_plan(tables["applied"]))
    alike = column(where(tables["applied"], name=plan), "alike").mean()
    corrected = int(column(statements, "corrected").sum())
    numbers = [
        (f"{failing} of {len(printed)}", "statements that the paper prints fail as they stand"),
        (f"{corrected}", f"violations of the forms that hold, in {len(statements)} checks"),
        (f"{ratio:.2f} ×", f"the loss of the best weights, by “{LABELS[best]}”"),
        (f"{alike:.2f}", "likeness to the ideal of words that a plan had not seen (1: the same)"),
    ]
    smoke = f"This is a smoke run, of {record['data']}." if "data" in record else ""
    links = "".join(f'<li><a href="#{x.name}">{_page.prose(x.title)}</a></li>' for x in sections)
    return "\n".join(
        [
            element("h1", "Meta word embeddings, with the theory checked"),
            element(
                "p",
                "Several word embeddings of one vocabulary can be weighted, put side by side, and "
                "be better than each of them. jaxmeta computes the weights, the bound on their "
                "loss and the dimensionality that Bollegala (IJCAI 2022) proposes, checks each "
                "statement of that paper by numbers, and has forms that hold where the print does "
                "not. This page was made by one command, from generated data whose ideal is known, "
                "so that every loss is against the truth.",
                class_="lead",
            ),
            *([element("p", smoke, class_="soft")] if smoke else []),
            _page.facts(numbers),
            f'<nav aria-label="Sections"><ul>{links}<li><a href="#next">What to run next</a></li>'
            "</ul></nav>",
        ]
    )


def _sources(noises: Rows, config: dict[str, Any]) -> Section:
    text, first = config["text"], where(noises, draw=0)
    words, draws = text["words"], config["draws"]
    tokens = [f"{x:,}" for x in text["tokens"]]
    message = (
        f"three corpora of one generated language of {words} words, of {', '.join(tokens[:-1])} "
        f"and {tokens[-1]} tokens, become three sources by `build_sources`; this was done "
        f"{draws} {'time' if draws == 1 else 'times'}, with a new text each."
    )
    found, best = _nearest_sigma(noises)
    other = next(x for x in found if x != best)
    title = (
        f"Noise by {SIGMAS[best]} is nearer to the truth: {_range(found[best])} times it, "
        f"by {SIGMAS[other]} {_range(found[other])} times"
    )
    table = _page.table(
        [Column("source", False), *map(Column, (
            "tokens", "pairs unseen", "σ, halves", "σ, nested", "σ, truth", "rank", "k, paper",
            "k, equalised", "k, best",
        ))],
        [
            [
                r["source"], f"{r['tokens']:,.0f}", f"{r['unseen']:.1%}", f"{r['halves']:.3f}",
                f"{r['nested']:.3f} ± {r['error']:.3f}", f"{r['noise']:.3f}",
                *(f"{r[x]:.0f}" for x in ("rank", "paper", "equalised", "best")),
            ]
            for r in first
        ],
        caption="The first draw. Rank: values above the edge of the noise.",
    )  # fmt: skip
    parts = [
        element(
            "p",
            "The language is a Markov chain whose words have hidden vectors, so the ideal signal, "
            "the PMI of expected counts, is known; a corpus shows it through the noise of its "
            "counts. Noise σ is estimated without the truth: by the paper from two halves of the "
            "corpus, or from halves, quarters and eighths, extrapolated to the whole.",
        ),
        table,
        _page.figure(title, [_demo_figures.sigmas(noises)], "Each dot is a source of one draw."),
    ]
    return Section("sources", "Text becomes sources", message, parts)


def _nearest_sigma(noises: Rows) -> tuple[dict[str, np.ndarray], str]:
    """Estimates over the truth, and the name of the one that is nearest to it."""
    found = {name: column(noises, name) / column(noises, "noise") for name in SIGMAS}
    return found, min(found, key=lambda name: float(np.mean(np.abs(np.log(found[name])))))


def _range(numbers: np.ndarray) -> str:
    return f"{numbers.min():.2f} to {numbers.max():.2f}"


def _spectra(noises: Rows, values: Rows, rank: int) -> Section:
    leading = [row for row in values if row["i"] <= rank and math.isfinite(row["estimated"])]
    ideal = column(leading, "ideal")
    errors = {
        name: float(np.sqrt(np.mean((column(leading, name) / ideal - 1) ** 2)))
        for name in ("observed", "estimated")
    }
    best = min(errors, key=errors.__getitem__)
    other = next(x for x in errors if x != best)
    title = (
        f"Of the leading values the {best} are {errors[best]:.0%} off the ideal's, the {other} "
        f"{errors[other]:.0%}"
    )
    beyond = [row for row in values if row["i"] > rank]
    lifted = float(np.mean(column(beyond, "observed") > 2 * column(beyond, "ideal")))
    message = (
        f"noise of σ in each entry makes values up to 2σ√n of nothing. Beyond the {rank} leading "
        f"ones, {lifted:.0%} of the observed values are more than twice the ideal's."
    )
    panels = [_demo_figures.spectrum(values, name) for name in _record.unique(noises, "source")]
    note = (
        f"The first draw. Off: root mean square of relative errors, of the {rank} leading values "
        "of each corpus as far as they are estimated."
    )
    return Section("spectra", "Spectra and noise", message, [_page.figure(title, panels, note)])


def _dimensions(noises: Rows, losses: Rows) -> Section:
    best = column(noises, "best_loss")
    ratios = {rule: column(noises, f"{rule}_loss") / best for rule in _demo_figures.RULES}
    worst = {rule: float(x.max()) for rule, x in ratios.items()}
    chosen = min(worst, key=worst.__getitem__)
    other = next(x for x in worst if x != chosen)
    says = {"paper": "the paper's rule", "equalised": "the rule “equalised”"}
    message = (
        f"more dimensions hold more of the ideal and more noise. At the k of {says[chosen]} the "
        f"loss is at most {worst[chosen]:.3f} times the smallest; at that of {says[other]} "
        f"{worst[other]:.3f} times."
    )
    exact = {rule: int(np.sum(x <= 1 + 1e-12)) for rule, x in ratios.items()}
    title = (
        f"“Equalised” has the best k in {exact['equalised']} of {len(best)} sources, the paper's "
        f"rule in {exact['paper']}"
    )
    panels = [_demo_figures.curve(losses, noises, x) for x in _record.unique(noises, "source")]
    return Section(
        "dimensions",
        "How many dimensions",
        message,
        [
            _page.figure(title, panels, "Of the first draw; no embedding has a loss of 1."),
            _page.figure(
                f"The worst choice costs {worst['equalised'] - 1:.1%} by “equalised”, and "
                f"{worst['paper'] - 1:.1%} by the paper's rule",
                [_demo_figures.costs(noises)],
                "Each dot is a source of one draw. Each rule has its own σ.",
            ),
        ],
    )  # fmt: skip


def _means(uses: Rows, name: str) -> list[tuple[str, float]]:
    """All ways but the oracle's, by their mean over draws, the best one first."""
    found = {x: float(column(where(uses, name=x), name).mean()) for x in LABELS if x != ORACLE}
    return sorted(found.items(), key=lambda pair: pair[1])


def _weights(uses: Rows) -> Section:
    ratios, scaled = dict(_means(uses, "ratio")), dict(_means(uses, "scaled_ratio"))
    best = min(ratios, key=ratios.__getitem__)
    weights = min(WEIGHTS, key=ratios.__getitem__)
    message = (
        f"nearest to the ideal is “{LABELS[best]}”, at {ratios[best]:.2f} times the loss of the "
        f"best weights there are, which know the ideal. "
    )
    if best not in WEIGHTS:
        message += f"Of weights it is {weights}, at {ratios[weights]:.2f} times. "
    paper = {name: scaled[name] for name in ("SW", "DW", "SW-blocks", "DW-blocks")}
    gains = [name for name, x in paper.items() if x < scaled["UW"]]
    message += (
        "At the best scale of each, "
        + (" and ".join(f"“{x}”" for x in gains) if gains else "none of the paper's weights")
        + (" gain" if len(gains) > 1 else " gains")
        + f" on no weights ({scaled['UW']:.2f})"
        + (": " if gains else "; they have ")
        + ", ".join(f"“{name}” {x:.2f}" for name, x in paper.items())
        + "."
    )
    rows = []
    order = [ORACLE, *sorted(ratios, key=ratios.__getitem__)]
    for name in order:
        own = where(uses, name=name)
        ratio = column(own, "ratio")
        rows.append([
            LABELS[name], f"{column(own, 'loss').mean():.3f}",
            f"{ratio.mean():.2f} ({ratio.max():.2f})", f"{column(own, 'scaled_ratio').mean():.2f}",
            f"{column(own, 'dimensions').mean():.0f}", ABOUT[name],
        ])  # fmt: skip
    numbers = ("loss", "ratio (worst)", "best scale", "dimensions")
    table = _page.table(
        [Column("use", False), *map(Column, numbers), Column("what it is", False)],
        rows,
        caption="Loss relative to no embedding, and its ratio to that of the best weights; means "
        "over draws. Best scale: the same ratio if one number multiplies all inner products.",
        chosen=[order.index(best)],
    )
    beaten = [f"“{LABELS[x]}” ({ratio:.2f})" for x, ratio in ratios.items() if ratio < 1]
    title = (
        f"Less loss than the best concatenation, in the mean: {' and '.join(beaten)}"
        if beaten
        else f"Nothing here beats the best concatenation; “{LABELS[best]}” comes nearest"
    )
    parts = [
        element(
            "p",
            "All weights see the same directions, and the noise by nested parts. UW: no weights; "
            "SW, a weight for each source, and DW, one for each dimension, are the paper's. "
            "`aligned` is for sources that share one ideal, as these do. Averaged signals and "
            "estimated ideals are no concatenations, so they may do better than the best weights.",
        ),
        _page.figure(title, [_demo_figures.uses(uses, LABELS)], "Each mark is a draw."),
        table,
    ]
    return Section("weights", "Weights, and what beats them", message, parts)


def _plan(applied: Rows, plans: Rows) -> Section:
    names = _record.unique(applied, "name")
    means = {x: float(column(where(applied, name=x), "alike").mean()) for x in names}
    widths = {x: float(column(where(applied, name=x), "dimensions").mean()) for x in names}
    best = _best_plan(applied)
    plan, all_words, single = planned(best), refitted(best), max(NAMES, key=means.__getitem__)
    first = where(plans, method=best)[0]
    side = "above" if means[plan] > means[single] else "not above"
    message = (
        f"a plan fitted to {first['fitted']:.0f} words and applied to {first['applied']:.0f} that "
        f"it had not seen has a likeness to the ideal of {means[plan]:.3f}, {side} that of the "
        f"best source alone ({single}, {means[single]:.3f}). Had it seen them, it would be "
        f"{means[all_words]:.3f}."
    )
    order = "less" if means[plan] < means[TOGETHER] else "more"
    title = (
        f"The plan “{best}” is {order} like the ideal than all columns side by side "
        f"({means[plan]:.3f}, {means[TOGETHER]:.3f}), with {widths[plan]:.0f} dimensions for "
        f"{widths[TOGETHER]:.0f}"
    )
    same = sum(row["same"] == "True" for row in plans)
    parts = [
        element(
            "p",
            "A plan needs only counts, means and inner products of columns, which add up over "
            "blocks of rows, files and machines, and goes for any rows that come later. "
            "`default` knows nothing of its sources, `aligned` the values and noise that "
            "`build_sources` found with all words. In the first draw they are "
            f"`{where(plans, method=PLANS[0])[0]['plan']}` and "
            f"`{where(plans, method=PLANS[1])[0]['plan']}`. Written to a file and read back, "
            f"{same} of {len(plans)} plans give the same numbers to the last bit.",
        ),
        _page.figure(title, [_demo_figures.applied(applied)], "Dots are draws, bars their means."),
    ]
    return Section("plan", "Rows that come later", message, parts)


def _best_plan(applied: Rows) -> str:
    """The method whose plan is most like the ideal."""
    return max(PLANS, key=lambda x: float(column(where(applied, name=planned(x)), "alike").mean()))


def _next() -> str:
    return "\n".join(
        [
            '<section id="next">',
            element("h2", "What to run next"),
            _page.code(NEXT),
            element("p", "In a script, files of any words and sizes become one:"),
            _page.code(OWN),
            element(
                "p",
                "`docs/` goes on from here, by example. `paper_notes.md` has every "
                "statement, what came of it and where it is.",
            ),
            "</section>",
        ]
    )


def _footer(record: dict[str, Any]) -> str:
    commit = record["commit"][:12] if record["commit"] else "no repository"
    changed = ", with changes" if record["uncommitted_changes"] else ""
    versions = ", ".join(f"{x} {record['versions'][x]}" for x in ("jaxmeta", "jax", "python"))
    made = (
        f"Made by `{record['command']}` in {record['seconds']:.0f} s on {record['processors']} "
        f"processors, at {commit}{changed}; {versions}; {record['dtype']}. Tables and provenance "
        "are beside this page."
    )
    return f"<footer>{element('p', made)}</footer>"
