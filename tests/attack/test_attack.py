"""A few of each attack; the rest is run by hand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attack import __main__ as attacks
from attack import files, mutations, oracles

ROOT = Path(__file__).parents[2]
NUMBERS = {"files": 1000, "kills": 2, "places": 1}
pytestmark = [
    pytest.mark.one_leg,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
def test_a_few(tmp_path, name):
    """In a process of its own, as children are forked before JAX has threads."""
    file = tmp_path / "found.json"
    command = [sys.executable, "-m", "tests.attack", name, "--json", file, "--seed", "1"]
    subprocess.run([*command, "--number", str(NUMBERS[name])], cwd=ROOT, check=True)
    found = json.loads(file.read_text())
    assert found["rows"]
    assert found["faults"] == []


def test_all_attacks_are_registered():
    texts = {file.stem: file.read_text() for file in Path(__file__).parent.glob("*.py")}
    with_run = {name for name, text in texts.items() if "\ndef run(number" in text}
    assert with_run == set(attacks.ATTACKS) == set(attacks.TITLES)


def test_mutations_are_the_same_by_their_seed():
    data = b"2 2\na 1 2\nb 3 4\n" * 20
    for seed in range(200):
        first, again = (mutations.mutated(mutations.random.Random(seed), data) for _ in range(2))
        assert first == again
    assert len({mutations.mutated(mutations.random.Random(x), data) for x in range(200)}) > 150


def test_every_target_is_right_as_it_stands(tmp_path):
    for place, target in enumerate(files.TARGETS()):
        folder = tmp_path / str(place)
        folder.mkdir()
        for name, content in target.beside.items():
            (folder / name).write_bytes(content)
        content = target.pack(target.content) if target.pack else target.content
        (folder / target.name).write_bytes(content)
        found = target.read(folder / target.name)
        right = target.right(content, target.content)
        assert any(files._equal(found, x) for x in right), target.name


@pytest.mark.parametrize(
    "content",
    [
        b"a 1 2\nb 3\n",
        b"a 1 2\rb 3 4\r",
        b"w1 1 2w2 3 4\nw3 1 2\n",
        b"a 1 nan\nb 1 2\n",
        b"",
        b"a\n",
    ],
)
def test_oracles_refuse(content):
    assert not any(oracles.text(content, header) for header in (True, False))


def test_the_page_is_that_of_the_figures():
    assert attacks.PAGE.read_text() == attacks.page()
