"""Every number in the pages, and the stored result that it comes from.

    python -m experiments.numbers             list them, page by page
    python -m experiments.numbers --check     say which come from nowhere, and exit with 1

A number comes from somewhere if it stands

* in a table that `experiments.notes` puts in, in code that tests run, in a formula or in a name;
* in a sentence of `_quoted.SENTENCES`, which is computed from `results/` here and now;
* in a phrase of `_given.GIVEN`, with the reason why no result of ours can hold it; or
* in a phrase of `_given.PENDING`, with the command whose run is not stored yet.

Words ("two", "half") are not looked at.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from experiments import (
    _given,
    _quoted,
    _quoted_counts,  # noqa: F401 - registers its own
    _quoted_optimum,  # noqa: F401 - the same
    _record,
)

NUMBER = re.compile(r"(?<![\w.,])(?:\d[\d,]*\d|\d)?(?:\.\d+)?(?<=\d)(?![\w,.]*\w)|[¼½¾⅛⅜⅝⅞]")
# What is no prose: tables that are put in, code, names, formulas, links, comments.
SKIPPED = re.compile(
    r"<!-- (?P<put>results/\S+) -->.*?<!-- end -->"
    r"|```.*?```|`[^`\n]+`|\$\$.+?\$\$|\$[^$]+\$|\]\([^)]*\)|<!--.*?-->",
    re.DOTALL,
)


class Found(NamedTuple):
    """A number on a page."""

    page: str
    line: int
    number: str
    around: str
    source: str
    """Where it comes from; "" if nothing says so."""


def spans(text: str, phrase: str) -> Iterator[tuple[int, int]]:
    """Where a phrase stands on a page, however its lines are broken."""
    pattern = r"\s+".join(map(re.escape, phrase.split()))
    yield from (found.span() for found in re.finditer(pattern, text))


def sources(page: str, text: str) -> list[tuple[int, int, str]]:
    """Stretches of a page whose numbers come from somewhere."""
    known = [
        (*found.span(), found["put"] or "code, name or formula") for found in SKIPPED.finditer(text)
    ]
    if page == "paper_notes.md" and "\n## References\n" in text:
        known.append((text.index("\n## References\n"), len(text), "the work cited"))
    phrases = [
        *((phrase, source) for phrase, source in _quoted.sentences(page)),
        *((phrase, f"given: {why}") for phrase, why in _given.GIVEN.items()),
        *((phrase, f"no run is stored: {how}") for phrase, how in _given.PENDING.items()),
    ]
    for phrase, source in phrases:
        known += [(*span, source) for span in spans(text, phrase)]
    for pattern, why in _given.PATTERNS.items():
        known += [(*found.span(), f"given: {why}") for found in re.finditer(pattern, text)]
    return known


def numbers(page: str, text: str) -> list[Found]:
    """All numbers of a page, but for those in what is no prose."""
    known, found = sources(page, text), []
    for number in NUMBER.finditer(text):
        start, end = number.span()
        source = next((s for a, b, s in known if a <= start and end <= b), "")
        if source == "code, name or formula":
            continue
        around = " ".join(text[max(start - 40, 0) : end + 40].split())
        line = text.count("\n", 0, start) + 1
        found.append(Found(page, line, number.group(), around, source))
    return found


def missing(page: str, text: str) -> list[str]:
    """Sentences that the page should have, and has not: a number changed, or a word."""
    return [phrase for phrase, _ in _quoted.sentences(page) if not any(spans(text, phrase))]


def idle(texts: Sequence[str]) -> list[str]:
    """Phrases with a reason that are on no page any more."""
    listed = (*_given.GIVEN, *_given.PENDING)
    return [phrase for phrase in listed if not any(any(spans(text, phrase)) for text in texts)]


def main(arguments: Sequence[str] | None = None, root: Path = _record.ROOT) -> None:
    """Do as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="print what comes from nowhere")
    asked, wrong = parser.parse_args(arguments), 0
    texts = {page: (root / page).read_text(encoding="utf-8") for page in _record.PAGES}
    for phrase in idle(list(texts.values())):
        wrong += 1
        print(f"_given.py: on no page: {phrase}")
    for page, text in texts.items():
        for each in numbers(page, text):
            wrong += not each.source
            if not asked.check or not each.source:
                print(f"{page}:{each.line}: {each.number:<9}{each.source or '???'} | {each.around}")
        for phrase in missing(page, text):
            wrong += 1
            print(f"{page}: results say what the page does not: {phrase}")
    if asked.check and wrong:
        sys.exit(f"{wrong} numbers or sentences without a stored result")


if __name__ == "__main__":
    main()
