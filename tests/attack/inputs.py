"""Other dtypes, shapes, strides, containers and values, for every row of the API table.

A call with one argument changed gives what the same numbers gave, or raises ValueError or
TypeError; what is no number may give anything. All else is a fault, and so is a call that takes a
minute of processor time. One that hangs for ten minutes ends the attack. Most of it is compilation.
"""

import faulthandler
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "api")]
from api_promises import FORM, as_in_scripts, norm_of  # noqa: E402
from helpers import assert_trees_close, cast  # noqa: E402
from test_table import TABLE  # noqa: E402

DTYPES = ("e", "f", "d", "i1", "i4", "i8", "u2", "?", "F", ">f4", ">f8", ">i4", "O", "U")
VALUES = (np.nan, np.inf, -np.inf, -0.0, 1e-45, 1e-38, 3e38, -1.0, 0.0)


def strided(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same numbers, laid out otherwise."""
    ways = [np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], x[::-1].copy()[::-1]]
    ways.append(np.lib.stride_tricks.as_strided(x, x.shape, x.strides, writeable=False))
    return ways[rng.integers(len(ways))]


def reshaped(x: np.ndarray, rng: np.random.Generator) -> Any:
    """Other shapes."""
    ways = [
        x[None],
        x[..., None],
        x[:0],
        x[:1],
        x[1:],
        x.T,
        x.ravel(),
        x[:, :0] if x.ndim > 1 else x[0],
    ]
    ways += [np.concatenate([x, x]), np.zeros((0,) * x.ndim, x.dtype), x.ravel()[0]]
    return ways[rng.integers(len(ways))]


def contained(x: np.ndarray, rng: np.random.Generator) -> Any:
    """What is no array."""
    ways = [x.tolist(), None, "a", {}, [], range(3), (x,), np.ma.masked_array(x), lambda: x]
    return ways[rng.integers(len(ways))]


def changed(kind: str, leaf: np.ndarray, rng: np.random.Generator) -> Any:
    """A leaf that is changed, and whether the numbers are the same."""
    if kind == "strides":
        return (strided(leaf, rng) if leaf.ndim else leaf), True
    if kind == "shape":
        return (reshaped(leaf, rng) if leaf.ndim else np.stack([leaf, leaf])), False
    if kind == "container":
        return contained(leaf, rng), False
    if kind == "dtype":
        with np.errstate(all="ignore"):
            return leaf.astype(rng.choice(DTYPES)), False
    spoilt = leaf.copy()
    spoilt.reshape(-1)[rng.integers(leaf.size)] = rng.choice(VALUES)
    return spoilt, False


def outcome(row: Any, given: Any, same: bool, expected: Any) -> tuple[str, str]:
    """What came of a call, and what is wrong with that."""
    try:
        found = jax.block_until_ready(row.call(*given))
    except (TypeError, ValueError) as error:
        return ("refused" if FORM.fullmatch(str(error)) else "refused by JAX"), ""
    except Exception as error:
        return "fault", f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
    if same:
        try:
            assert_trees_close(found, expected, scale=norm_of(expected), terms=row.terms)
        except AssertionError as error:
            return "fault", re.sub(r"\s+", " ", str(error))[:100]
    return ("the same" if same else "computed"), ""


def run(number: int, seed: int) -> dict[str, Any]:
    """Rows of what was tried, and what was found to be wrong."""
    jax.config.update("jax_disable_most_optimizations", True)
    rng, names = np.random.default_rng(seed), list(TABLE)
    kinds = ("strides", "shape", "container", "dtype", "value")
    counts, faults, truth = {kind: Counter() for kind in kinds}, [], {}
    for i in range(number):
        name, kind = names[i % len(names)], kinds[rng.integers(len(kinds))]
        row = TABLE[name]
        if name not in truth:
            arguments = as_in_scripts(cast(row.generic(np.random.default_rng(1))))
            truth[name] = arguments, row.call(*arguments)
        arguments, expected = truth[name]
        leaves, structure = jax.tree.flatten(arguments)
        at = rng.integers(len(leaves))
        leaf, same = changed(kind, np.array(leaves[at], jnp.zeros(()).dtype), rng)
        given = structure.unflatten([*leaves[:at], leaf, *leaves[at + 1 :]])
        faulthandler.dump_traceback_later(600, exit=True)
        start = time.process_time()
        came, why = outcome(row, given, same, expected)
        if not why and time.process_time() - start > 60:
            why = "over a minute of processor time"
        faulthandler.cancel_dump_traceback_later()
        counts[kind][came] += 1
        if why:
            what = f"{getattr(leaf, 'dtype', type(leaf).__name__)} {np.shape(leaf)}"
            faults.append(f"{name}, argument {at}, {kind}, {what}: {why}")
    return {"rows": [{"kind": kind, **counts[kind]} for kind in kinds], "faults": faults}
