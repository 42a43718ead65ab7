"""Sizes at which products of Python integers leave the 32 bits of JAX's: traced, not computed."""

import jax
import numpy as np
import pytest
import test_table
from api_promises import generator
from api_rows import WORDS
from helpers import cast

pytestmark = pytest.mark.one_leg

MANY = 10_000_000


@pytest.mark.parametrize("name", test_table.TABLE)
def test_ten_million_words(monkeypatch, name):
    """Every row of the API table, by the shapes of what it takes."""
    row = test_table.TABLE[name]
    arguments = cast(row.generic(generator()))
    for module in test_table.MODULES:
        for size in ("N", "WORDS"):
            monkeypatch.setattr(module, size, MANY, raising=False)
        for known, of_a_word in (("PRESENT", np.ones(2, bool)), ("NEIGHBOURS", np.arange(3))):
            of_all = np.broadcast_to(of_a_word, (MANY, len(of_a_word)))
            monkeypatch.setattr(module, known, of_all, raising=False)
    many = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct([MANY if d == WORDS else d for d in x.shape], x.dtype),
        arguments,
    )
    jax.eval_shape(row.call, *many)
