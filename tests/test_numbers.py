"""Every number in the pages has a stored result, or a reason why not."""

import shutil

import pytest

from experiments import _given, _quoted, _record, numbers

pytestmark = pytest.mark.one_leg


def check(root):
    """The exit message of the check, or None if all is well."""
    try:
        numbers.main(["--check"], root)
    except SystemExit as end:
        return str(end)
    return None


@pytest.fixture
def pages(tmp_path):
    """A copy of the pages, and a way to change a word of the notes."""
    for page in _record.PAGES:
        (tmp_path / page).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(_record.ROOT / page, tmp_path / page)
    notes = tmp_path / "paper_notes.md"

    def change(old, new):
        text = notes.read_text()
        assert old in text
        notes.write_text(text.replace(old, new, 1))
        return tmp_path

    return change


def test_every_number_comes_from_somewhere(capsys):
    assert check(_record.ROOT) is None, capsys.readouterr().out


def test_a_changed_number_is_found(pages, capsys):
    """One that results say, in prose; both the sentence and its numbers are reported."""
    assert check(pages("within 2.4 points", "within 2.3 points"))
    said = capsys.readouterr().out
    assert "results say what the page does not: UW is within 2.4 points" in said
    assert "2.3      ??? |" in said


@pytest.mark.parametrize("new", ["gains 17.25 points", "about .5", "in 3 of 4", "12,345 words"])
def test_a_new_number_needs_a_source(pages, new):
    root = pages("## Errata\n", f"## Errata\n\nThat {new}.\n")
    assert "without a stored result" in check(root)


def test_a_reason_that_is_on_no_page_is_found(monkeypatch):
    monkeypatch.setitem(_given.GIVEN, "1234 reasons", "none")
    assert "1 numbers or sentences" in check(_record.ROOT)


def test_what_is_no_number():
    """Names, formulas, code, links and words; what stands between commas and stops is one."""
    text = "A `k = 5`, $n = 6$, float32, x2, [a](b#7), 8,000 of 9.5, .25, ½ and two. <!-- 10 -->"
    found = [each.number for each in numbers.numbers("README.md", text)]
    assert found == ["8,000", "9.5", ".25", "½"]


def test_where_a_number_comes_from():
    (phrase, source), *_ = _quoted.sentences("README.md")
    found = numbers.numbers("README.md", f"It is {phrase}, for IJCAI 2022, and 3.")
    assert [each.source for each in found] == [source, "given: a year", ""]
    table = "<!-- results/x/y.md -->\n\n| 4 |\n\n<!-- end -->"
    assert [each.source for each in numbers.numbers("README.md", table)] == ["results/x/y.md"]


def test_listing(capsys):
    numbers.main([])
    said = capsys.readouterr().out
    assert "results/verdicts/verdicts.json | " in said
    assert "???" not in said
