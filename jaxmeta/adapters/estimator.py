"""A meta-embedding is fitted and applied as a transformer of scikit-learn."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from jaxmeta import _checks
from jaxmeta.covariance import moments
from jaxmeta.methods import Settings, apply, fit
from jaxmeta.plans import PLANS, needs

__all__ = ["MetaEmbedding"]

FLOATS = ("float64", "float32")

_base = _checks.package("sklearn.base", "eval")
_validation = _checks.package("sklearn.utils.validation", "eval")


class MetaEmbedding(
    _base.ClassNamePrefixFeaturesOutMixin, _base.TransformerMixin, _base.BaseEstimator
):
    r"""A meta-embedding of sources whose rows stand for the same items.

    Sources come as a list or tuple of matrices, or side by side in one that is as wide as all of
    them: scikit-learn's own tools, as `GridSearchCV`, cut rows out of one matrix alone.

    Parameters
    ----------
    method
        A linear method, one of `jaxmeta.plans.PLANS`.
    k
        Dimensions of the result: a number, None for all, or the fraction of the PIP norm that may
        be lost.
    sizes
        The width of each source, where they come in one matrix; None if that is one source.
    sigmas, alpha
        The noise of each source and its exponent, as in `Settings`.

    Attributes
    ----------
    plan_
        What is done to rows, as `jaxmeta.fit` has it.
    n_features_in_
        Columns of all sources.

    >>> sources = np.eye(6, 3, dtype=np.float32), np.ones((6, 2), np.float32)
    >>> MetaEmbedding().fit_transform(sources).shape
    (6, 5)
    >>> MetaEmbedding(k=2, sizes=(3, 2)).fit_transform(np.hstack(sources)).shape
    (6, 2)
    """

    def __init__(
        self,
        method: str = "default",
        *,
        k: int | float | None = None,
        sizes: Sequence[int] | None = None,
        sigmas: Sequence[float] | None = None,
        alpha: float = 0.5,
    ) -> None:
        """Keep the settings, which `fit` checks."""
        self.method = method
        self.k = k
        self.sizes = sizes
        self.sigmas = sigmas
        self.alpha = alpha

    def fit(self, X: Any, y: Any = None) -> "MetaEmbedding":
        """Fit the plan to rows of sources; `y` is not used."""
        del y
        method = _checks.named("method", self.method, PLANS)
        # Grids of parameters are arrays, and what comes out of them NumPy's numbers.
        k = self.k.item() if isinstance(self.k, np.generic) else self.k
        sigmas = None if self.sigmas is None else tuple(self.sigmas)
        settings = Settings(k=k, sigmas=sigmas, alpha=self.alpha)
        stats = moments(self._sources(X, reset=True), **needs(method, settings))
        self.plan_ = fit(method, stats, settings)
        return self

    def transform(self, X: Any) -> Float[np.ndarray, "n m"]:
        """Apply the plan to rows of the same sources."""
        _validation.check_is_fitted(self)
        return np.asarray(apply(self.plan_, self._sources(X, reset=False)))

    @property
    def _n_features_out(self) -> int:
        return self.plan_.width

    def __sklearn_tags__(self) -> Any:
        """Say which dtypes stay as they are."""
        tags = super().__sklearn_tags__()
        kept = [dtype for dtype in FLOATS if jax.dtypes.canonicalize_dtype(dtype) == dtype]
        tags.transformer_tags.preserves_dtype = kept
        return tags

    def _sources(self, X: Any, *, reset: bool) -> tuple[np.ndarray, ...]:
        """Take sources out of either form, and check them."""
        sizes = self.sizes if reset else self.plan_.widths
        if isinstance(X, list | tuple) and X and all(np.ndim(each) == 2 for each in X):
            blocks = {
                f"X[{j}]": _validation.check_array(each, dtype=FLOATS, input_name=f"X[{j}]")
                for j, each in enumerate(X)
            }
            _checks.same_rows(**blocks)
            widths = tuple(block.shape[1] for block in blocks.values())
            if sizes is not None and widths != tuple(sizes):
                do = "pass the sources in the order of sizes, or of fit"
                _checks.fail("X", f"sources of widths {widths}", f"{tuple(sizes)}", do)
            sizes, X = widths, np.hstack(list(blocks.values()))
        X = _validation.validate_data(self, X, reset=reset, dtype=FLOATS)
        sizes = sizes or (X.shape[1],)
        _checks.sizes("sizes", sizes)
        if sum(sizes) != X.shape[1]:
            expected, do = f"{X.shape[1]}, the columns of X", "pass the width of each source"
            _checks.fail("sizes", f"{sum(sizes)} in all", expected, do)
        return tuple(np.split(X, np.cumsum(sizes)[:-1], axis=1))
