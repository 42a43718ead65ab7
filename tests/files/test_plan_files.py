"""Plans are kept in files that people can read, and what is no plan for the sources is refused."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from vector_files import needs, rejected

from jaxmeta.covariance import moments
from jaxmeta.files import load_plan, plan_files, plan_header, save_plan
from jaxmeta.plans import Plan, Settings, apply_plan, plan_of

pytestmark = pytest.mark.one_leg

NAMES = ("glove", "fastText é", "news")


@pytest.fixture
def sources(rng):
    return tuple(rng.normal(size=(40, k)).astype(np.float32) for k in (3, 4, 2))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "plan.safetensors"


def fitted(name, sources, **settings):
    return plan_of(name, moments(sources), Settings(**settings))


def equal(first, second):
    for name in ("method", "unit", "join", "widths", "width"):
        assert getattr(first, name) == getattr(second, name)
    assert (first.centres is None) == (second.centres is None)
    for x, y in zip(first.centres or (), second.centres or (), strict=True):
        np.testing.assert_array_equal(x, y, strict=True)
    for x, y in zip(first.maps, second.maps, strict=True):
        np.testing.assert_array_equal(x, y, strict=True)
    for name in ("rows", "values", "lost"):
        x, y = getattr(first, name), getattr(second, name)
        assert (x is None) == (y is None)
        if x is not None:
            np.testing.assert_array_equal(x, y, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("default", {}),
        ("UW", {}),
        ("UW-unit", {}),
        ("AVG", {}),
        ("PCA", {"k": 2}),
        ("DW", {"sigmas": (0.1, 0.2, 0.1)}),
    ],
)
def test_round_trip(path, sources, name, settings):
    plan = fitted(name, sources, **settings)
    save_plan(path, plan, names=NAMES)
    found = load_plan(path, names=list(NAMES))
    equal(found, plan)
    given = tuple(map(jnp.asarray, sources))
    np.testing.assert_array_equal(apply_plan(found, given), apply_plan(plan, given))


def test_the_header_can_be_read(path, sources):
    save_plan(path, fitted("PCA", sources, k=2), names=NAMES)
    header = plan_header(path)
    assert header.pop("date").startswith("20")
    assert set(header.pop("versions")) == {"jaxmeta", "jax", "numpy"}
    assert header == {
        "method": "PCA",
        "unit": False,
        "join": "sum",
        "names": list(NAMES),
        "widths": [3, 4, 2],
        "width": 2,
        "dtype": "float32",
        "rows": 40,
    }
    content = path.read_bytes()
    for text in ('"method": "PCA"', '"widths": "[3, 4, 2]"', "fastText é"):
        assert text.encode() in content


@pytest.mark.parametrize(
    ("old", "new"),
    [("UW, unit rows", "UW-unit"), ("SW as released in 2021", "SW-released-2021"), ("UW", "UW")],
)
def test_files_of_version_1(path, old, new):
    save_plan(path, Plan(None, (jnp.ones(2),), method=new))

    def change(header):
        header["__metadata__"] |= {"version": "1", "method": old}

    changed(path, change)
    assert load_plan(path).method == plan_header(path)["method"] == new


def test_old_names_are_those_of_today():
    assert set(plan_files.RENAMED.values()) <= set(plan_files.METHODS)
    assert not set(plan_files.RENAMED) & set(plan_files.METHODS)


@needs("safetensors")
def test_others_read_it(path, sources):
    from safetensors import safe_open

    plan = fitted("default", sources)
    save_plan(path, plan)
    with safe_open(path, "np") as file:
        assert file.metadata()["method"] == "default"
        names = [f"{kind}.{j}" for kind in ("centres", "maps") for j in range(3)]
        assert sorted(file.keys()) == [*names, "rows"]
        np.testing.assert_array_equal(file.get_tensor("maps.1"), plan.maps[1])


def test_plans_without_rows_or_names(path):
    save_plan(path, Plan(None, (jnp.ones(2),), method="exact"))
    assert load_plan(path).rows is None
    assert plan_header(path)["rows"] is None
    rejected(
        "a plan without names of sources, expected one for a; save", load_plan, path, names="a"
    )


def test_sources_of_another_order(path, sources):
    save_plan(path, fitted("UW", sources), names=NAMES)
    other = ("news", *NAMES[:2])
    message = "names: got news, glove, .*expected glove, fastText é, news, .*in that order"
    rejected(message, load_plan, path, names=other)
    rejected("expected glove, .*fitted to", load_plan, path, names=NAMES[:2])
    rejected("names: got 2 entries, expected 3", save_plan, path, load_plan(path), names=("a", "b"))


@pytest.mark.usefixtures("_our_words")
def test_names_that_are_none(path, sources):
    plan, message = fitted("UW", sources), "names: got 3, expected strings"
    rejected(message, save_plan, path, plan, names=("a", "b", 3), error=TypeError)


def test_sources_of_other_widths(path, sources):
    save_plan(path, fitted("default", sources))
    turned = tuple(map(jnp.asarray, sources[::-1]))
    rejected(r"widths \(2, 4, 3\), expected \(3, 4, 2\)", apply_plan, load_plan(path), turned)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            Plan(None, (jnp.ones(2),), method="mine"),
            "plan: got method 'mine', expected one",
        ),
        (Plan(None, (jnp.ones(2),), join="max"), "plan: got join 'max', expected one of 'conc"),
        (Plan(None, ()), "plan: got arrays none"),
        (
            Plan(None, (jnp.array([1, jnp.nan]),)),
            r"numbers in maps\.0 that are not finite",
        ),
        (Plan(None, (jnp.ones(2, jnp.float16),)), "plan: got dtypes float16, expected float32 or"),
        (Plan(None, (jnp.ones((2, 2, 2)),)), r"plan: got shape \(2, 2, 2\) of maps\.0"),
        (Plan((jnp.ones(3),), (jnp.ones(2),)), r"plan: got shapes \(3,\) and \(2,\) of centres\.0"),
        (Plan((jnp.ones(2),), (jnp.ones(2),) * 2), "plan: got arrays .*centres of all or of none"),
        (Plan(None, (jnp.ones((2, 2)), jnp.ones((2, 3))), join="sum"), r"to widths \[2, 3\]"),
    ],
)
def test_plans_that_are_none(path, hooked, plan, message):
    if hooked:
        pytest.skip("jaxtyping checks the annotations")
    rejected(message, save_plan, path, plan)
    assert not list(path.parent.iterdir())


def test_what_is_no_plan(path):
    message = "plan: got a tuple, expected a plan of a linear method"
    rejected(message, save_plan, path, (1, 2), error=TypeError)


def changed(path, change):
    """Change the header of a file, without the package."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("format", "pt", "format 'pt', expected 'jaxmeta plan'; pass a file that save_plan wrote"),
        ("format", None, "format None, expected 'jaxmeta plan'"),
        ("version", "3", "version '3' of the format, expected 1 to 2; load it with"),
        ("method", "mine", "method 'mine', expected one of 'default', 'UW'"),
        ("join", "max", "join 'max', expected one of 'concatenate', 'sum', 'mean'"),
        ("join", None, "no join in its header .*damaged or was changed: save"),
        ("unit", "maybe", "no unit in its header .*JSONDecodeError"),
        ("widths", "[4, 3, 2]", r"maps for widths \[3, 4, 2\], of float32, expected \[4, 3, 2\]"),
        ("dtype", "float64", "expected .*float64, as its header says"),
        ("names", "7", "no names in its header"),
    ],
)
def test_headers_that_are_wrong(path, sources, field, value, message):
    save_plan(path, fitted("default", sources), names=NAMES)

    def change(header):
        del header["__metadata__"][field]
        if value is not None:
            header["__metadata__"][field] = value

    changed(path, change)
    rejected(rf"plan\.safetensors: got .*{message}", load_plan, path)


def renamed(old, new):
    return lambda header: header.update({new: header.pop(old)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (renamed("maps.2", "maps.3"), r"arrays .*maps\.3.*, expected maps, and centres"),
        (renamed("centres.2", "more"), "arrays .*more"),
        (lambda header: header["maps.0"].update(dtype="I32"), r"dtype I32 of maps\.0, expected"),
        (lambda header: header["maps.0"].update(shape=[3, 4]), "no whole safetensors file .*bytes"),
        (lambda header: header["maps.0"].update(shape=[9]), r"shapes \(3,\) and \(9,\) of centres"),
        (lambda header: header["maps.0"].update(shape="ab"), "no whole safetensors file"),
        (lambda header: header["maps.0"].update(data_offsets=[4, 40]), "no whole safetensors file"),
        (lambda header: header["maps.0"].pop("dtype"), "no whole safetensors file .*'dtype'"),
        (lambda header: header["__metadata__"].update(a=1), "metadata that is no text"),
    ],
)
def test_tensors_that_are_wrong(path, sources, change, message):
    save_plan(path, fitted("default", sources))
    changed(path, change)
    rejected(rf"plan\.safetensors: got .*{message}", load_plan, path)


@pytest.mark.parametrize("length", [0, 7, 8, 100, -1, -100])
def test_truncated_files(path, sources, length):
    save_plan(path, fitted("default", sources))
    path.write_bytes(path.read_bytes()[:length])
    rejected(r"plan\.safetensors: got no whole safetensors file .*fetch or save", load_plan, path)


def test_damaged_files(path, sources):
    save_plan(path, fitted("default", sources))
    content = path.read_bytes()
    path.write_bytes(b"\xff" * 8 + content[8:])
    rejected("no whole safetensors file", load_plan, path)
    path.write_bytes(content[:8] + bytes(20) + content[28:])
    rejected("no whole safetensors file", load_plan, path)
    path.write_bytes(content[:-4] + np.float32("inf").tobytes())
    rejected("numbers in .* that are not finite", load_plan, path)
    path.write_bytes(content + b"more")
    rejected("no whole safetensors file", load_plan, path)


def test_an_interruption_leaves_the_old_plan(path, sources, monkeypatch):
    save_plan(path, fitted("UW", sources))
    before = path.read_bytes()

    def interrupt(*_):
        raise KeyboardInterrupt("now")

    from jaxmeta.files import _safetensors

    monkeypatch.setattr(_safetensors, "write_header", interrupt)
    rejected("now", save_plan, path, fitted("AVG", sources), error=KeyboardInterrupt)
    assert [found.name for found in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == before
