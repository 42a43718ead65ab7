"""What a check of a statement returns, and how violations are counted."""

import functools
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

import jax
import numpy as np
from numpy.typing import ArrayLike

# Of the size of the quantities compared: far above rounding (about 1e-15), far below any violation.
TOLERANCE = 1e-12


Given = ParamSpec("Given")
Found = TypeVar("Found")


def in_64_bit(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Decorate what compares numbers: rounding in 32 bit would be a violation."""

    @functools.wraps(function)
    def call(*arguments: Given.args, **settings: Given.kwargs) -> Found:
        with jax.enable_x64(True):
            return function(*arguments, **settings)

    return call


class Origin(NamedTuple):
    """Where a statement comes from, and what of the library it is about."""

    kind: str
    """Printed: a statement of the paper, tested as it stands. Reading: what its text suggests and
    does not state, so that the paper does not fail with it. Ours: not in the paper."""
    where: str
    """The section of the paper, as printed."""
    quote: str
    """Its sentence, or the words of it that count."""
    functions: tuple[str, ...]
    """Those of the library that the check calls."""


class Tally(NamedTuple):
    """How often a statement failed, and by how much at worst."""

    violations: int
    """Instances on which it does not hold."""
    worst: float
    """Largest relative violation; for an identity that holds, the largest rounding error."""


class Tightness(NamedTuple):
    """Bound over loss."""

    median: float
    low: float
    high: float


class Verdict(NamedTuple):
    """One row of the table."""

    name: str
    claim: str
    instances: int
    printed: Tally
    corrected: Tally
    tightness: Tightness | None = None


class Counterexample(NamedTuple):
    """A pinned instance on which the printed form fails."""

    setting: str
    truth: float
    """The left-hand side, computed directly."""
    printed: float
    """What the printed form says of it."""
    corrected: float
    """What the corrected form says of it."""


def at_most(left: ArrayLike, right: ArrayLike, scale: ArrayLike) -> Tally:
    """Tally of left <= right; the worst violation is (left - right) / right."""
    left, right, scale = np.broadcast_arrays(*map(np.asarray, (left, right, scale)))
    wrong = ~(left <= right + TOLERANCE * scale)  # so that NaN counts as a violation
    left, right, scale = left[wrong], right[wrong], scale[wrong]
    nothing = right <= TOLERANCE * scale
    excess = np.where(nothing, np.inf, left / np.where(nothing, 1, right) - 1)
    return Tally(int(wrong.sum()), float(excess.max(initial=0)))


def equal(left: ArrayLike, right: ArrayLike, scale: ArrayLike) -> Tally:
    """Tally of left = right; the worst violation is |left - right| / scale."""
    left, right, scale = np.broadcast_arrays(*map(np.asarray, (left, right, scale)))
    size = np.where(scale == 0, 1, scale)
    error = np.abs(left - right) / size
    return Tally(int((~(error <= TOLERANCE)).sum()), float(error.max(initial=0)))


def both(first: Tally, second: Tally) -> Tally:
    """Two statements as one, which holds where both do."""
    return Tally(first.violations + second.violations, max(first.worst, second.worst))


def tightness(bound: ArrayLike, loss: ArrayLike) -> Tightness:
    """Median and range of bound over loss, where there is a loss."""
    bound, loss = np.asarray(bound), np.asarray(loss)
    some = loss > TOLERANCE * loss.max()
    ratio = bound[some] / loss[some]
    return Tightness(float(np.median(ratio)), float(ratio.min()), float(ratio.max()))
