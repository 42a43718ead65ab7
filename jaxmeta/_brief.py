"""What results show of themselves at a prompt: a line, whatever the size of their arrays."""

from typing import Any

import jax
import numpy as np

__all__ = ["brief"]

FEW = 6  # numbers that are shown, and entries of a tuple


def brief(value: Any) -> str:
    """Numbers with four digits, larger arrays by dtype and shape, NamedTuples field by field.

    >>> brief((0.123456, np.zeros((300, 20)), ("the", "of"), ("a",) * 1000))
    "(0.1235, float64[300,20], ('the', 'of'), 1,000 of str)"
    """
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _of_array(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            each = zip(value._fields, value, strict=True)
            shown = ", ".join(f"{name}={brief(x)}" for name, x in each)
            return f"{type(value).__name__}({shown})"
        if len(value) > FEW:
            return f"{len(value):,} of {type(value[0]).__name__}"
        return f"({', '.join(map(brief, value))}{',' * (len(value) == 1)})"
    return repr(value)


def _of_array(value: Any) -> str:
    if isinstance(value, jax.core.Tracer) or value.size > FEW or value.ndim > 1:
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    numbers = [f"{x:.4g}" for x in np.asarray(value).ravel().tolist()]
    return numbers[0] if value.ndim == 0 else f"[{' '.join(numbers)}]"
