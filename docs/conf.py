"""How Sphinx builds these pages: `make docs`."""

import importlib
import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join((str(HERE), str(ROOT)))  # of the cells that are run

import names  # noqa: E402

import jaxmeta  # noqa: E402

project = "jaxmeta"
author = "The jaxmeta authors"
copyright = "2026, the jaxmeta authors"
release = version = jaxmeta.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
html_math_renderer = "mathml"  # of browsers themselves: no script, and no network
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_theme = "furo"
html_title = "jaxmeta"
html_show_sourcelink = False
nitpicky = True
# Types in signatures: their own pages are those of other projects.
nitpick_ignore_regex = [("py:(class|obj|data)", r".*")]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
nb_render_markdown_format = "myst"
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / ".cache" / "docs" / "cells" / names.digest())
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
maximum_signature_line_length = 90

LOGGER = logging.getLogger(__name__)
# Pages that stand outside of this folder, for readers of the repository.
OUTSIDE = {"notes": "paper_notes.md", "changes": "CHANGELOG.md", "contributing": "CONTRIBUTING.md"}
PIECES = re.compile(r"\$\$.+?\$\$|\$[^$]+\$|`[^`]+`|\*[^\s*][^*]*\*", re.DOTALL)
MODULE = re.compile(r"```\{module\} (\S+)\n```")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
# What the converter to MathML knows by another name, or in one size.
SPELT = {
    r"\arg": r"\operatorname{arg}",
    r"\big\|": r"\Vert ",
    r"\Big\|": r"\Vert ",
    "{aligned}": "{align*}",
}
RESULT = re.compile(r"\]\((?:\.\./)*results/(\w+)/(\w+)\.md\)")


def brought_in(app: Sphinx, page: str, content: list[str]) -> None:
    """Pages from outside, and links to them."""
    del app
    text = content[0]
    if page in OUTSIDE:
        text = (ROOT / OUTSIDE[page]).read_text(encoding="utf-8")
        text = re.sub(r"\]\((?:docs/)?([\w/]+\.md)", lambda found: f"]({_inside(found[1])}", text)
    if page == "results":
        text += _results()
    up = "../" * page.count("/")
    for name, outside in OUTSIDE.items():
        text = text.replace(f"](../{up}{outside}", f"]({up}{name}.md")
    text = RESULT.sub(rf"]({up}results.md#\1-\2)", text)
    content[0] = MODULE.sub(lambda found: _entries(found[1]), text)


def _entries(module: str) -> str:
    """A module's docstring, and an entry for each name that it defines."""
    listed = [f".. automodule:: {module}\n   :no-members:"]
    listed += [f".. auto{kind}:: {full}" for kind, full in names.entries(module)]
    return "\n\n".join(["```{eval-rst}", *listed, "```"])


def _results() -> str:
    """The tables that pages lead to."""
    every = [*sorted(HERE.rglob("*.md")), *(ROOT / outside for outside in OUTSIDE.values())]
    pages = "\n".join(page.read_text(encoding="utf-8") for page in every)
    text = ""
    for name, file in sorted(set(RESULT.findall(pages))):
        table = (ROOT / "results" / name / f"{file}.md").read_text(encoding="utf-8")
        text += f"\n## {name} {file}\n\n" + re.sub(r"(?m)^#+ ", "### ", table)
    return text


def _inside(path: str) -> str:
    return next((f"{name}.md" for name, outside in OUTSIDE.items() if outside == path), path)


def as_rest(text: str) -> str:
    r"""Docstrings are Markdown with `code` and $formulas$; autodoc wants reStructuredText."""
    parts, end = [], 0
    for piece in PIECES.finditer(text):
        parts.append(_plain(text[end : piece.start()]))
        inner = piece.group()
        if inner.startswith("$$"):
            formula = inner.strip("$").strip().replace("\n", " ")
            parts.append(f"\n\n.. math:: {formula}\n\n")
        elif inner.startswith("$"):
            parts.append(f":math:`{' '.join(inner.strip('$').split())}`\\ ")
        elif inner.startswith("*"):
            parts.append(f"{inner}\\ ")
        else:
            parts.append(f"``{' '.join(inner.strip('`').split())}``\\ ")
        end = piece.end()
    return "".join([*parts, _plain(text[end:])])


def _plain(text: str) -> str:
    """Prose, with what reStructuredText would take for marks of its own."""
    text = text.replace("\\", "\\\\").replace("|", "\\|")
    return re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", re.sub(r"(?<!^)(?<!\n)\*", r"\\*", text))


def docstring(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Translate a docstring, but for its examples."""
    del app, what, name, value, options
    text = "\n".join(lines)
    if text.startswith("Alias for field number"):
        text = ""
    text = re.sub(r"(?m)^(\w+)\n-{3,}$", r"*\1*\n", text)
    paragraphs = re.split(r"\n{2,}", text)
    lines[:] = "\n\n".join(map(_paragraph, paragraphs)).split("\n")


def _paragraph(text: str) -> str:
    """Prose is translated; examples and what is indented are left as they are."""
    if text.lstrip().startswith(">>>"):
        return text
    if all(line.startswith("    ") for line in text.split("\n")):
        return f"::\n\n{text}"
    return as_rest(text)


class LinkedNames(SphinxPostTransform):
    """Names of the library in code lead to their entries; one that is not there is a fault."""

    default_priority = 5
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Look at every piece of inline code."""
        homes = names.homes()
        short = {full.rpartition(".")[2]: home for full, home in homes.items()}
        objects = self.env.get_domain("py").objects  # type: ignore[attr-defined]
        for text in list(self.document.findall(nodes.Text)):
            if "jaxlib._jax.Array" in text:
                text.parent.replace(text, nodes.Text(text.replace("jaxlib._jax.Array", "Array")))
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext().removesuffix("()")
            linked = isinstance(literal.parent, nodes.reference | pending_xref)
            if linked or not NAME.fullmatch(text):
                continue
            full = re.sub(r"^jm\.", "jaxmeta.", text)
            if full.startswith("jaxmeta."):
                if not _exists(full):
                    LOGGER.warning("%s is not there", text, location=literal)
                home = homes.get(full, full)
            else:
                plain = not re.search(r"_|[A-Z]", text)
                home = "" if plain else short.get(text, "")
            if home in objects:
                entry = objects[home]
                link = make_refnode(
                    self.app.builder, self.env.docname, entry.docname, entry.node_id,
                    literal.deepcopy(), home,
                )  # fmt: skip
                literal.replace_self(link)


def _exists(full: str) -> bool:
    """Whether a dotted name can be reached."""
    value: Any = jaxmeta
    for count, part in enumerate(full.split(".")[1:], start=2):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join(full.split(".")[:count]))
            except ImportError:
                return False
    return True


def formula(translator: Any, node: nodes.Element) -> None:
    """A formula in a line, or by itself, as MathML."""
    how = "block" if isinstance(node, nodes.math_block) else "inline"
    text = node.astext()
    for name, known in SPELT.items():
        text = text.replace(name, known)
    translator.body.append(convert(text, display=how))
    raise nodes.SkipNode


def complete(app: Sphinx, env: BuildEnvironment) -> None:
    """Every public name has an entry."""
    del app
    objects = env.get_domain("py").objects  # type: ignore[attr-defined]
    for home in sorted(set(names.homes().values()) - set(objects)):
        LOGGER.warning("%s is public, and has no entry in docs/api", home)


def setup(app: Sphinx) -> None:
    """Connect these to Sphinx."""
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("source-read", brought_in)
    app.connect("autodoc-process-docstring", docstring, priority=400)
    app.connect("env-check-consistency", complete)
    app.add_post_transform(LinkedNames)
