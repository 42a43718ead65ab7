"""The pages: every public name has an entry, every page is reached, every link leads somewhere."""

import importlib.util
import re

import pytest

import jaxmeta
from experiments import _record

pytestmark = pytest.mark.one_leg

ROOT = _record.ROOT
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
# What readers of the repository see, too.
READ = [*PAGES, *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "RELEASING"))]
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMAND = re.compile(r"python -m ((?:theory|experiments|benchmarks|tests)[\w.]*)")


def page_of(path):
    return path.relative_to(ROOT).as_posix()


def without_code(text):
    return re.sub(r"```.*?```|`[^`\n]+`|\$\$.+?\$\$|\$[^$]+\$", "", text, flags=re.DOTALL)


def anchors(path):
    """The anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"(?m)^#+ (.+)$", re.sub(r"(?s)```.*?```", "", path.read_text()))
    return {re.sub(r"[^\w\- ]", "", each).strip().lower().replace(" ", "-") for each in headings}


@pytest.fixture(scope="module")
def names():
    """The module that the build of the pages asks, too."""
    spec = importlib.util.spec_from_file_location("names", DOCS / "names.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_every_public_name_has_an_entry(names):
    """Pages of the reference name modules, and have an entry for each name at home there."""
    text = "\n".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    listed = re.findall(r"```\{module\} (\S+)\n```", text)
    assert len(listed) == len(set(listed))
    entries = [full for module in listed for _, full in names.entries(module)]
    assert len(entries) == len(set(entries))
    assert set(entries) == set(names.homes().values())
    assert set(listed) == set(names.modules()) - {"jaxmeta"}


def test_a_name_without_an_entry_is_found(names, monkeypatch):
    monkeypatch.setattr(jaxmeta.pip, "__all__", [*jaxmeta.pip.__all__, "svd"])
    monkeypatch.setattr(jaxmeta.pip, "svd", lambda x: x, raising=False)
    names.homes.cache_clear()
    assert "jaxmeta.pip.svd" in names.homes().values()
    names.homes.cache_clear()


def test_kinds_of_entries(names):
    assert ("class", "jaxmeta.bounds.BoundTerms") in names.entries("jaxmeta.bounds")
    assert ("data", "jaxmeta.weightings.WEIGHTINGS") in names.entries("jaxmeta.weightings")
    assert ("exception", "jaxmeta.files.DuplicateWords") in names.entries("jaxmeta.files")
    assert ("function", "jaxmeta.linalg.right_axes") in names.entries("jaxmeta.linalg")
    assert not names.entries("jaxmeta.text")  # all are at home in its modules


def test_equations_of_the_paper_have_functions(names):
    found = names.equations()
    assert set(found) >= {1, 2, 4, 6, 7, 8, 9}
    assert found[7] == ["jaxmeta.bounds.bound_terms"]


def test_the_front_door_is_on_the_first_page_of_the_reference():
    text = (DOCS / "api" / "index.md").read_text()
    assert set(re.findall(r"`jm\.(\w+)`", text)) == set(jaxmeta.__all__)


def test_every_page_is_in_a_toctree():
    reached = {"index"}
    for page in PAGES:
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            reached |= {(page.parent / line).relative_to(DOCS).as_posix() for line in lines}
    assert reached == {page.relative_to(DOCS).with_suffix("").as_posix() for page in PAGES}


@pytest.mark.parametrize("path", READ, ids=page_of)
def test_links_lead_somewhere(path):
    for link in LINK.findall(without_code(path.read_text())):
        if link.startswith(("http:", "https:")):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("path", READ, ids=page_of)
def test_commands_are_there(path):
    for module in COMMAND.findall(path.read_text()):
        assert importlib.util.find_spec(module.rstrip(".")) is not None, module


def test_cells_say_what_they_are_run_by():
    """A page with cells has the head without which they would be shown and not run."""
    for page in PAGES:
        cells = re.findall(r"(?m)^```\{code-cell\}", page.read_text())
        assert bool(cells) == page.read_text().startswith("---\nfile_format: mystnb\n"), page


@pytest.mark.parametrize("path", READ, ids=page_of)
def test_names_of_the_library_are_there(path):
    for name in re.findall(r"`jm\.([\w.]*\w)`", path.read_text()):
        found = jaxmeta
        for part in name.split("."):
            found = getattr(found, part)


def test_one_version():
    assert f"\nversion: {jaxmeta.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_page_of_the_command_has_all_commands():
    app = pytest.importorskip("jaxmeta.cli.app", reason="typer is not installed")
    text = (DOCS / "command.md").read_text()
    for command in app.EXAMPLES:
        assert f"| `jaxmeta {command.__name__}` |" in text
