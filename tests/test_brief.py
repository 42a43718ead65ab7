"""What results show at a prompt: a line, whatever their size, and under a trace too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeta import Spectrum
from jaxmeta.equalise import IdealEstimate
from jaxmeta.evaluate import Score
from jaxmeta.nested import NestedNoise
from jaxmeta.quadratic import Solution
from jaxmeta.several import Uses
from jaxmeta.text import Source

pytestmark = pytest.mark.one_leg

ONE, MANY = np.float32(1.23456), np.zeros(5000, np.float32)
SPECTRUM = Spectrum(jnp.zeros((5000, 9)), jnp.zeros(9))


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (Solution(MANY, ONE, 3), "Solution(weights=float32[5000], residual=1.235, steps=3)"),
        (Solution(np.ones(2), ONE, 3), "Solution(weights=[1 1], residual=1.235, steps=3)"),
        (
            Score("MEN", "spearman", 0.74512, 0.7, 0.8, 5000, 6000, MANY),
            "Score(task='MEN', metric='spearman', value=0.7451, low=0.7, high=0.8, covered=5000, ",
        ),
        (
            Source("wiki", ("the",) * 5000, SPECTRUM, MANY, 0.1, 9, 9, 0.5, 1e-4),
            "Source(name='wiki', words=5,000 of str, spectrum=Spectrum(vectors=",
        ),
        (NestedNoise(ONE, ONE, MANY[:2], MANY, ONE), "growth=[0 0], scales=float32[5000], "),
        (IdealEstimate(SPECTRUM, MANY), "IdealEstimate(spectrum=Spectrum(vectors="),
        (Uses(*[ONE] * 5, MANY[:1], MANY[:1] == 0, np.int32(0)), "kept=[1], source=0)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_results_are_a_line(result, shown):
    assert shown in repr(result)
    assert len(repr(result)) < 300
    assert "\n" not in repr(result)


def test_within_a_trace():
    def shown(weights):
        seen.append(repr(Solution(weights, weights[0], 1)))
        return weights

    seen = []
    jax.eval_shape(shown, jax.ShapeDtypeStruct((3,), np.float32))
    assert seen == ["Solution(weights=float32[3], residual=float32[], steps=1)"]
