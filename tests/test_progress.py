"""The progress bar, on a terminal and in a file."""

import io

import pytest

from jaxmeta import ProgressBar

pytestmark = pytest.mark.one_leg


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_moves_on_a_terminal():
    terminal = Terminal()
    show = ProgressBar(terminal)
    show("counts", 0.0)
    show("counts", 0.5)
    show("counts", 1.0)
    lines = terminal.getvalue().split("\r")[1:]
    assert [line.count("█") for line in lines] == [0, 12, 24]
    assert [line.split()[2] for line in lines] == ["0%", "50%", "100%"]
    assert terminal.getvalue().count("\n") == 1
    assert all(line.startswith("counts") for line in lines)


def test_a_file_has_a_line_for_each_stage_that_is_done():
    file = io.StringIO()
    show = ProgressBar(file)
    for stage in ("one", "two"):
        for fraction in (0.0, 0.3, 1.0):
            show(stage, fraction)
    show("three", 0.9)
    lines = file.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["one", "two"]
    assert all("100%" in line for line in lines)


def test_a_stage_may_come_again():
    file = io.StringIO()
    show = ProgressBar(file)
    show("one", 1.0)
    show("one", 1.0)
    assert len(file.getvalue().splitlines()) == 2
