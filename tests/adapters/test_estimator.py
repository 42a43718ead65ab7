"""The estimator, in the hands of scikit-learn itself."""

import pickle
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxmeta.adapters
from jaxmeta import meta_embedding
from jaxmeta.covariance import moments
from jaxmeta.methods import Settings, apply, fit

sklearn = pytest.importorskip("sklearn", "1.6", reason="pip install jaxmeta[eval]")

from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from jaxmeta.adapters import MetaEmbedding  # noqa: E402

pytestmark = pytest.mark.slow

SIZES = (4, 3)


@pytest.fixture
def sources(rng):
    signal = rng.normal(size=(60, 5))
    found = (signal @ rng.normal(size=(5, k)) + rng.normal(size=(60, k)) + 1 for k in SIZES)
    return tuple(source.astype(np.float32) for source in found)


def close(found, expected):
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("method", ["UW", pytest.param("default", marks=pytest.mark.one_leg)])
def test_scikit_learn_finds_nothing_wrong(method, hooked):
    # It passes anything to see that nothing is checked early, and in this run beartype does.
    early = {"check_do_not_raise_errors_in_init_or_set_params": "types are checked"}
    found = check_estimator(
        MetaEmbedding(method),
        on_skip=None,
        on_fail=None,
        expected_failed_checks=early if hooked else {},
    )
    wrong = [(r["check_name"], r["exception"]) for r in found if r["status"] == "failed"]
    assert not wrong
    # This one wants a variable of the environment that changes what SciPy does.
    assert {r["check_name"] for r in found if r["status"] == "skipped"} <= {"check_array_api_input"}
    assert len(found) > 40


@pytest.mark.parametrize("method", ["default", "UW-unit", "AVG"])
def test_it_is_the_library(sources, method):
    expected = np.asarray(meta_embedding(method, tuple(map(jnp.asarray, sources))))
    made = MetaEmbedding(method)
    for given in (sources, list(sources)):
        close(made.fit_transform(given), expected)
    wide = MetaEmbedding(method, sizes=SIZES).fit(np.hstack(sources))
    close(wide.transform(np.hstack(sources)), expected)
    close(wide.transform(sources), expected)
    close(wide.transform([source[:5] for source in sources]), expected[:5])
    close(made.transform(np.hstack(sources)), expected)


def test_settings(sources):
    sigmas, arrays = (0.1, 0.2), tuple(map(jnp.asarray, sources))
    made = MetaEmbedding("spiked", sigmas=list(sigmas), alpha=1.0).fit(sources)
    plan = fit("spiked", moments(sources), Settings(sigmas=sigmas, alpha=1.0))
    close(made.transform(sources), np.asarray(apply(plan, arrays)))
    assert MetaEmbedding(k=0.3).fit_transform(sources).shape[1] < 7
    assert MetaEmbedding().fit_transform(sources[0]).shape == (60, 4)  # a source alone


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
def test_dtypes(sources, dtype):
    """float32 stays; float64 does if there is any, and nobody is warned if there is none."""
    given = tuple((10 * source).astype(dtype) for source in sources)
    found = MetaEmbedding().fit_transform(given)
    wide = np.float32 if dtype == np.float32 else np.float64
    assert found.dtype == jax.dtypes.canonicalize_dtype(wide)


def test_copies(sources):
    """A clone is not fitted, and what is pickled is."""
    made = MetaEmbedding(k=2, sizes=SIZES).fit(np.hstack(sources))
    again = clone(made)
    assert again.get_params() == made.get_params()
    assert repr(again) == "MetaEmbedding(k=2, sizes=(4, 3))"
    with pytest.raises(NotFittedError):
        again.transform(sources)
    close(pickle.loads(pickle.dumps(made)).transform(sources), made.transform(sources))


def test_a_plan_pickles(sources):
    plan, arrays = fit("default", moments(sources), Settings(k=2)), tuple(map(jnp.asarray, sources))
    again = pickle.loads(pickle.dumps(plan))
    assert (again.method, again.widths, again.width) == ("default", SIZES, 2)
    np.testing.assert_array_equal(apply(again, arrays), apply(plan, arrays))


def test_the_dimension_is_chosen_by_grid_search(sources):
    signal = np.hstack(sources) @ np.array([1, 0, 0, -1, 1, 0, 0])
    labels = (signal > np.median(signal)).astype(int)
    steps = make_pipeline(MetaEmbedding("UW", sizes=SIZES), LogisticRegression())
    grid = {"metaembedding__k": [*np.arange(1, 3), 0.3, None]}
    search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(np.hstack(sources), labels)
    scores = search.cv_results_["mean_test_score"]
    assert scores[3] == max(scores) > scores[0]
    assert search.predict(np.hstack(sources)).shape == (60,)


def test_names_of_columns(sources):
    made = MetaEmbedding(k=2, sizes=SIZES).fit(np.hstack(sources))
    assert list(made.get_feature_names_out()) == ["metaembedding0", "metaembedding1"]
    pandas = pytest.importorskip("pandas", reason="pip install pandas")
    frame = pandas.DataFrame(np.hstack(sources), columns=[*"abcdefg"])
    made.set_output(transform="pandas").fit(frame)
    assert list(made.feature_names_in_) == [*"abcdefg"]
    found = made.transform(frame)
    assert list(found.columns) == ["metaembedding0", "metaembedding1"]
    assert found.index.equals(frame.index)
    with pytest.raises(ValueError, match="feature names"):
        made.transform(frame[[*"bacdefg"]])
    made.fit([frame[[*"abcd"]], frame[[*"efg"]]])
    assert made.n_features_in_ == 7
    assert not hasattr(made, "feature_names_in_")  # several frames have no names in common


@pytest.mark.one_leg
def test_without_scikit_learn(monkeypatch):
    monkeypatch.delitem(sys.modules, "jaxmeta.adapters.estimator")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxmeta\[eval\]'"):
        _ = jaxmeta.adapters.MetaEmbedding
    assert "MetaEmbedding" in dir(jaxmeta.adapters)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = jaxmeta.adapters.nothing


@pytest.mark.one_leg
def test_what_is_refused(sources):
    wide, first = np.hstack(sources), sources[0]
    hole = first.copy()
    hole[3, 1] = np.nan
    for made, given, message in (
        (MetaEmbedding("LLE"), sources, "method: got 'LLE', expected one of"),
        (MetaEmbedding("DW"), sources, "settings.sigmas: got None"),
        (MetaEmbedding(k=8), sources, "settings.k: got 8, expected 1 to 7"),
        (MetaEmbedding(sizes=(4, 4)), wide, "sizes: got 8 in all, expected 7, the columns of X"),
        (MetaEmbedding(sizes=(7, 0)), wide, r"sizes\[1\]: got 0"),
        (MetaEmbedding(sizes=(3, 4)), sources, r"X: got sources of widths \(4, 3\)"),
        (MetaEmbedding(sigmas=(1.0,)), sources, "settings.sigmas: got 1 entries, expected 2"),
        (MetaEmbedding(), (first, sources[1][1:]), r"60 rows in X\[0\], 59 rows in X\[1\]"),
        (MetaEmbedding(), (sources[1], hole), r"Input X\[1\] contains NaN"),
        (MetaEmbedding(), [], "Expected 2D array"),
    ):
        with pytest.raises(ValueError, match=message):
            made.fit(given)
    made = MetaEmbedding().fit(sources)
    with pytest.raises(ValueError, match="in the order of sizes, or of fit"):
        made.transform(sources[::-1])
    with pytest.raises(ValueError, match="X has 6 features, but MetaEmbedding is expecting 7"):
        made.transform(wide[:, 1:])
