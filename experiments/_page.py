"""A page that needs nothing else: HTML of text, tables and figures, with all of it inside."""

import base64
import html
import io
import re
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.figure import Figure

from experiments import _record

TEMPLATE = string.Template(Path(__file__).with_name("_page.html").read_text(encoding="utf-8"))
INK = {"light": "#1d2126", "dark": "#e6e8ea"}  # as in the template


class Panel(NamedTuple):
    """A part of a figure, drawn for light and for dark pages."""

    draw: Callable[[Any, str], None]
    """On axes, with a colour for what is black on paper."""
    alt: str
    size: tuple[float, float] = (5.2, 3.8)


class Column(NamedTuple):
    """A column of a table."""

    head: str
    number: bool = True


class Section(NamedTuple):
    """A part of the page."""

    name: str
    title: str
    message: str
    """What its numbers come to."""
    parts: list[str]


def page(title: str, parts: Sequence[str]) -> str:
    """The whole page."""
    return TEMPLATE.substitute(title=html.escape(title), body="\n".join(parts))


def prose(text: str) -> str:
    """Plain text, with `code` in backticks."""
    pieces = re.split("`([^`]*)`", text)
    return "".join(
        f"<code>{html.escape(piece)}</code>" if i % 2 else html.escape(piece)
        for i, piece in enumerate(pieces)
    )


def element(tag: str, text: str, **attributes: str) -> str:
    """Prose in a tag; `class_` stands for the attribute class."""
    return f"<{tag}{_attributes(attributes)}>{prose(text)}</{tag}>"


def _attributes(given: dict[str, str]) -> str:
    return "".join(f' {name.rstrip("_")}="{html.escape(x)}"' for name, x in given.items())


def code(lines: str) -> str:
    """Commands, as they are typed."""
    return f"<pre><code>{html.escape(lines)}</code></pre>"


def facts(numbers: Sequence[tuple[str, str]]) -> str:
    """Numbers that stand out, and what each is of."""
    each = (f"<div>{element('dt', x)}{element('dd', what)}</div>" for x, what in numbers)
    return f'<dl class="facts">{"".join(each)}</dl>'


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    *,
    caption: str,
    chosen: Sequence[int] = (),
) -> str:
    """A table of prose, whose first column names the row; it scrolls by itself if it is wide."""
    heads = "".join(_cell("th", c, c.head, scope="col") for c in columns)
    lines = []
    for i, row in enumerate(rows):
        first, *others = zip(columns, row, strict=True)
        cells = _cell("th", *first, scope="row") + "".join(_cell("td", *x) for x in others)
        mark = ' class="chosen"' if i in chosen else ""
        lines.append(f"<tr{mark}>{cells}</tr>")
    body = "\n".join(lines)
    return (
        f"{element('p', caption, class_='note')}\n"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(caption)}">'
        f"<table>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(tag: str, column: Column, text: str, **attributes: str) -> str:
    if column.number:
        attributes["class_"] = "number"
    return element(tag, text, **attributes)


def cards(heads: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str) -> str:
    """A table of HTML with much text, whose rows are cards on a narrow screen."""
    head = "".join(element("th", text, scope="col") for text in heads)
    lines = (f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    body = "\n".join(lines)
    return (
        f"{element('p', caption, class_='note')}\n"
        f'<table class="cards">\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table>"
    )


def figure(title: str, panels: Sequence[Panel], note: str = "") -> str:
    """Panels side by side, or below one another where the screen is narrow."""
    drawn = "\n".join(map(_picture, panels))
    below = element("p", note, class_="note") if note else ""
    return (
        f'<figure>{element("figcaption", title)}\n<div class="panels">\n{drawn}\n</div>\n'
        f"{below}</figure>"
    )


def _picture(panel: Panel) -> str:
    light, dark = (_svg(panel, ink) for ink in INK.values())
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{html.escape(panel.alt)}"></picture>'
    )


def _svg(panel: Panel, ink: str) -> str:
    """The drawing as an address that is the drawing."""
    names = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style = _record.STYLE | dict.fromkeys(names, ink) | {"svg.hashsalt": "", "font.size": 12}
    with matplotlib.rc_context(style):
        drawing = Figure(figsize=panel.size)
        panel.draw(drawing.subplots(), ink)
        file = io.BytesIO()
        drawing.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode()}"
