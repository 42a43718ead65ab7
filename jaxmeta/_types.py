"""What arguments are, in the words of annotations: checked at run time in the tests alone."""

from collections.abc import Sequence
from typing import TypeAlias

from jaxtyping import Array, Bool, Float, Real

__all__ = ["GivenWeights", "Numbers", "Present", "Scalar", "Sources", "Spectra", "Weights"]

Scalar: TypeAlias = Real[Array, ""] | float
"""One number, traced."""
Sources: TypeAlias = Sequence[Float[Array, "n _"]]
"""One embedding per source, with a row for each of the same words."""
Spectra: TypeAlias = Sequence[Float[Array, " _"]]
"""The values of each source."""
Numbers: TypeAlias = Sequence[Real[Array, ""] | float] | Real[Array, " N"]
"""A number per source."""
Weights: TypeAlias = Sequence[Real[Array, "..."] | float] | Real[Array, " N"]
"""A weight per source, or per dimension of each."""
GivenWeights: TypeAlias = Weights | Sequence[Sequence[Scalar]]
"""The same, or as nested lists; or a result that has them, as that of `exact_weights`."""
Present: TypeAlias = Bool[Array, "n N"]
"""Whether source j has word w."""
