"""What tests of vector files share."""

import importlib.util

import numpy as np
import pytest

from jaxmeta.files.vectors import Vectors


def needs(name):
    absent = importlib.util.find_spec(name) is None
    return pytest.mark.skipif(absent, reason=f"{name} is not installed")


SAFETENSORS = pytest.param(".safetensors", marks=needs("safetensors"))

TEXT = [".txt", ".vec", ".glove"]

PACKED = [f"{kind}{packing}" for kind in (".txt", ".bin") for packing in (".gz", ".bz2", ".zip")]

FLOATS = [np.float16, np.float32, np.float64]

SMALL = Vectors(("the", "dé", "x"), np.array([[0.5, -1.25], [3, 1e-3], [-0.0, 7e8]], np.float32))


def same(x, y):
    """Equal to the last bit."""
    assert x.words == y.words
    assert x.matrix.dtype == y.matrix.dtype
    assert x.matrix.shape == y.matrix.shape
    assert x.matrix.tobytes() == np.ascontiguousarray(y.matrix).tobytes()


def rejected(match, function, *arguments, error=ValueError, **settings):
    with pytest.raises(error, match=match):
        function(*arguments, **settings)
