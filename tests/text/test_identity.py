"""Functions are told apart by what they compute with, and known again in another process."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeta import log_count, ppmi, shifted_pmi
from jaxmeta.text import lower_words, whitespace
from jaxmeta.text._identity import identity

pytestmark = pytest.mark.one_leg


class Shifted:
    """A signal with a state."""

    def __init__(self, shift, words=()):
        self.shift, self.words = shift, set(words)

    def signal(self, counts):
        return counts * self.shift

    def __call__(self, counts):
        return counts + self.shift


def scaled(by):
    def decorate(function):
        @functools.wraps(function)
        def call(counts):
            return function(counts) * by

        return call

    return decorate


def base(counts, power=1):
    return counts**power


def other(counts, power=1):
    return counts**power


def long(at):
    found = np.zeros(3000)
    found[at] = 1
    return found


WORDS = ("the", "of", "and", "a", "in")
DIFFERENT = {
    "functions": (log_count, ppmi, base, other, whitespace, lower_words, str.split, str.upper),
    "bound": (Shifted(1.0).signal, Shifted(5.0).signal, Shifted(1).signal, Shifted(1.0)),
    "sets": (Shifted(1.0, WORDS).signal, Shifted(1.0, WORDS[1:]).signal),
    "partial": (
        functools.partial(shifted_pmi, shift=2.0), functools.partial(shifted_pmi, shift=3.0),
        functools.partial(base, 2), functools.partial(functools.partial(base, 2), power=2),
    ),
    "long arrays": [functools.partial(base, power=long(at)) for at in (1000, 1500)],
    "dtypes": [functools.partial(base, power=np.zeros(2, kind)) for kind in ("<f4", "<f8", "<i4")],
    "arrays of JAX": [functools.partial(base, power=jnp.arange(at, at + 2000)) for at in (0, 1)],
    "patterns": (re.compile("a").findall, re.compile("b").findall, re.compile("a", re.I).findall),
    "decorated": (scaled(5)(base), scaled(3)(base), scaled(5)(other)),
}  # fmt: skip


def every():
    return [function for functions in DIFFERENT.values() for function in functions]


def test_what_computes_with_something_else_is_another():
    found = [identity(function) for function in every()]
    assert len(set(found)) == len(found)


def test_the_same_is_known_again():
    assert identity(Shifted(1.0, WORDS).signal) == identity(Shifted(1.0, WORDS[::-1]).signal)
    assert identity(functools.partial(base, power=long(7))) == identity(
        functools.partial(base, power=long(7))
    )
    assert identity(re.compile("a").findall) == identity(re.compile("a").findall)


SAY = "import test_identity; print([test_identity.identity(x) for x in test_identity.every()])"


def test_they_are_known_again_in_another_process():
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    said = [
        subprocess.run(
            [sys.executable, "-c", SAY],
            env=os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    ]
    assert said[0] == said[1]
    assert said[0].count(",") == len(every()) - 1


def test_a_function_that_is_edited_is_another():
    sources = ("counts + 1", "counts + 2", "counts - 1", "len(counts)", "max(counts)", "counts + 1")
    found = []
    for source in sources:
        own = {"__name__": "edited"}
        exec(f"def signal(counts):\n    return {source}", own)
        found.append(identity(own["signal"]))
    assert len(set(found)) == 5
    assert found[0] == found[-1]


def test_what_cannot_be_known_again_is_refused(tmp_path):
    def local(counts):
        return counts

    with open(tmp_path / "x", "w") as file:
        for function in (
            lambda counts: counts,
            local,
            functools.partial(base, power=lambda: 2),
            functools.partial(local),
            file.write,
            Shifted(local).signal,
        ):
            with pytest.raises(ValueError, match=r"cache: got .*name of their own.*cache=None"):
                identity(function)
