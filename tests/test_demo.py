"""The page of the demo: whole, by itself, and true to the tables of its run."""

import base64
import dataclasses
import html.parser
import itertools
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from experiments import _demo_page, _demo_text, _page, _record, demo

pytestmark = [pytest.mark.one_leg, pytest.mark.slow]

VOID = {"br", "img", "link", "meta", "source"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SVG = "{http://www.w3.org/2000/svg}svg"


class Reader(html.parser.HTMLParser):
    """Tags with their attributes, and the text, of a page that must be nested as it should be."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    def found(self, *names):
        return [(tag, attributes) for tag, attributes in self.tags if tag in names]


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "demo"
    as_recorded = demo.report(demo.SMOKE, out)
    return out, as_recorded


@pytest.fixture(scope="module")
def page(made):
    return read((made[0] / "index.html").read_text(encoding="utf-8"))


def test_files_are_written(made):
    out, as_recorded = made
    assert as_recorded
    tables = {f"{name}.csv" for name in ("statements", "examples", "bounds", "noises", "values")}
    tables |= {f"{name}.csv" for name in ("losses", "uses", "applied", "plans")}
    others = {"index.html", "default.safetensors", "aligned.safetensors"}
    others.add("provenance.json")
    assert {path.name for path in out.iterdir()} == tables | others


def test_every_image_is_in_the_page_and_says_what_it_shows(page):
    images, sources = page.found("img"), page.found("source")
    assert len(images) == len(sources) >= 10
    for _, attributes in images:
        assert len(attributes["alt"]) > 40
    for address in [a["src"] for _, a in images] + [a["srcset"] for _, a in sources]:
        kind, _, data = address.partition(",")
        assert kind == "data:image/svg+xml;base64"
        drawing = ElementTree.fromstring(base64.b64decode(data, validate=True))
        assert drawing.tag == SVG
        for element in drawing.iter():
            for name, value in element.attrib.items():
                if name.endswith("href"):
                    assert value.startswith("#")
    assert len({a["src"] for _, a in images}) == len(images)


def test_nothing_comes_from_elsewhere(page, made):
    text = (made[0] / "index.html").read_text(encoding="utf-8")
    assert page.found("script", "iframe", "object", "embed", "base", "form") == []
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "srcset", "href", "data", "action", "poster", "background"):
            if name in attributes:
                assert attributes[name].startswith(("data:", "#"))
    assert "url(" not in text
    assert "@import" not in text
    assert re.findall(r"https?:|//[a-z]+\.[a-z]", text) == []


def test_links_lead_to_sections(page):
    places = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(set(places)) == len(places)
    links = [attributes["href"] for _, attributes in page.found("a")]
    assert links == [f"#{place}" for place in places]


def test_headings_are_in_order(page):
    levels = [int(tag[1]) for tag, _ in page.found("h1", "h2", "h3", "h4")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert page.found("html")[0][1] == {"lang": "en"}


def test_formulae_are_readable(page):
    text = "".join(page.text)
    assert "λ̃ᵢ ≤ 2σ√n" in text
    assert "$" not in text
    assert "\\" not in text
    assert "nan" not in text.split()


def test_numbers_are_those_of_the_run(made, page):
    text = " ".join("".join(page.text).split())
    rows = _record.read_table(made[0] / "statements.csv")
    assert {row["name"] for row in rows} == set(demo.SMOKE.statements)
    for row in rows:
        assert f"theory/{row['name']}.py" in text
        assert f"on {row['violations']:.0f} of {row['instances']:.0f}" in text
    bounds = _record.read_table(made[0] / "bounds.csv")
    below = [sum(row[name] < 1 - 1e-9 for row in bounds) for name in ("printed", "corrected")]
    assert below[1] == 0 < below[0]
    assert f"on {below[0]} of {len(bounds)} instances, the corrected one on 0" in text
    for use in _record.read_table(made[0] / "uses.csv"):
        assert f"{use['loss']:.3f}" in text
        assert use["scaled_ratio"] <= use["ratio"] + 1e-9
        if use["name"] in _demo_text.WEIGHTS:
            assert use["ratio"] >= 1 - 1e-9  # no weights beat the oracle
    for noise in _record.read_table(made[0] / "noises.csv"):
        assert noise["best_loss"] <= min(noise["paper_loss"], noise["equalised_loss"])
        assert f"{noise['noise']:.3f}" in text
    assert all(row["same"] == "True" for row in _record.read_table(made[0] / "plans.csv"))


@pytest.fixture
def changed(made, tmp_path, monkeypatch):
    """What the page says if one table of the run were another; its figures are left out."""
    monkeypatch.setattr(_page, "_svg", lambda *_: "data:,")

    def change(name, **fields):
        shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
        rows = _record.read_table(tmp_path / f"{name}.csv")
        kind = dataclasses.make_dataclass("Row", rows[0])
        table = [kind(**(row | {x: make(row) for x, make in fields.items()})) for row in rows]
        _record.write_table(tmp_path / f"{name}.csv", table)
        return _demo_page.make(tmp_path)

    return change


def test_sentences_follow_the_numbers(changed):
    swapped = changed("noises", halves=lambda r: r["noise"], nested=lambda r: 3 * r["noise"])
    assert "Noise by two halves is nearer to the truth: 1.00 to 1.00" in swapped.page
    swapped = changed("noises", halves=lambda r: 3 * r["noise"], nested=lambda r: r["noise"])
    assert "Noise by nested parts is nearer to the truth: 1.00 to 1.00" in swapped.page
    best = changed("uses", ratio=lambda r: 0.5 if r["name"] == "DW" else 1.5)
    assert any("nearest to the ideal is “weights: DW”, at 0.50" in line for line in best.story)
    none = changed("uses", scaled_ratio=lambda r: 1.0 if r["name"] == "UW" else 1.5)
    assert any("none of the paper's weights gains" in line for line in none.story)


def test_verdicts_against_the_record_are_told(changed):
    worse = changed("statements", corrected=lambda r: float(r["name"] == "bias"))
    assert not worse.as_recorded
    assert "Not as recorded: bias." in worse.story[0]
    fails = changed("statements", corrected=lambda _: 0.0, recorded=lambda _: True)
    assert not fails.as_recorded
    few = changed(
        "statements", violations=lambda _: 0.0, corrected=lambda _: 0.0, recorded=lambda _: False
    )
    assert few.as_recorded
    assert "undecided" in few.story[0]
    assert "? undecided" in few.page


def test_markup_of_others_is_text():
    cell = _page.table([_page.Column("a", False)], [["<b> & `x<y`"]], caption="it's")
    assert "<td>" not in cell
    assert '<th scope="row">&lt;b&gt; &amp; <code>x&lt;y</code></th>' in cell


def test_work_is_spread_over_processes():
    with demo.spread(2) as each:
        assert list(each(os.path.basename, ["a/b", "c/d", "e"])) == ["b", "d", "e"]


def test_a_browser_has_nothing_to_say(made, tmp_path):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    switches = (
        "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
        "disable-background-networking", "disable-component-update", "disable-sync",
        "enable-logging=stderr", f"user-data-dir={tmp_path}", "dump-dom",
    )  # fmt: skip
    done = subprocess.run(
        [browser, *(f"--{switch}" for switch in switches), f"file://{made[0] / 'index.html'}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "What to run next" in done.stdout
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
