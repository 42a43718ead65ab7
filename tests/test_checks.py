"""Checks say which argument, what came, what was expected and what to do, word for word."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxmeta import (
    METHODS,
    RULES,
    WEIGHTINGS,
    Spectrum,
    Vectors,
    _checks,
    align,
    apply,
    bound_terms,
    concatenate,
    exact_weights,
    fit,
    meta_embedding,
    moments,
    pip_quadratic,
    write_vectors,
)
from jaxmeta.evaluate import similarity
from jaxmeta.files import plan_files
from jaxmeta.quadratic import per_source

pytestmark = pytest.mark.one_leg

E, F = jnp.ones((6, 3)), jnp.ones((5, 3))
MU = jnp.array([3.0, 2.0, 1.0])
NAN, V, T = float("nan"), ValueError, TypeError
FLOATS = "expected float32 or float64; cast it with .astype(jnp.float32)."
MATRIX = "expected a matrix (an array with 2 axes); "
NUMBER = "expected one number; "
DESCENDING = (
    "expected descending numbers that are not negative; sort by magnitude, as decompose does."
)
TUPLE = "expected a tuple with one array per source; "
WHETHER = "pass present[w, j], whether source j has word w."

# A check, its arguments, the type of the error, and the whole message.
BAD = [
    (_checks.array, (E, 1), V, "x: got an array of shape (6, 3), expected a vector (an "
     "array with 1 axes); reshape it, or use jax.vmap over a batch."),
    (_checks.array, ([[1.0]], 2), T, f"x: got a list, {MATRIX}convert it with jnp.asarray."),
    (_checks.array, (E.astype(jnp.bfloat16), 2), T, f"x: got dtype bfloat16, {FLOATS}"),
    (_checks.array, (jnp.arange(3), 1), T, f"x: got dtype int32, {FLOATS}"),
    (_checks.array, (MU > 0, 1), T, f"x: got dtype bool, {FLOATS}"),
    (_checks.array, (E[:, :0], 2), V, "x: got an array of shape (6, 0), expected at least "
     "one entry; drop empty arrays."),
    (_checks.scalar, (MU,), V, f"x: got an array of shape (3,), {NUMBER}use jax.vmap to "
     "try several at once."),
    (_checks.scalar, ([0.5],), T, f"x: got a list, {NUMBER}pass a float."),
    (_checks.scalar, (True,), T, f"x: got a bool, {NUMBER}pass a float."),
    (_checks.not_negative, (-0.5,), V, "x: got -0.5, expected a number that is not "
     "negative; estimate it with noise_std."),
    (_checks.not_negative, (jnp.array(-0.5),), V, "x: got -0.5, expected a number that is "
     "not negative; estimate it with noise_std."),
    (_checks.not_negative, (NAN,), V, "x: got nan, expected a number that is not negative; "
     "estimate it with noise_std."),
    (_checks.positive, (0.0,), V, "x: got 0.0, expected a number above 0; estimate it with "
     "noise_std."),
    (_checks.positive, (NAN, "mend it"), V, "x: got nan, expected a number above 0; mend "
     "it."),
    (_checks.descending, (MU[::-1],), V, f"x[1]: got 2.0, {DESCENDING}"),
    (_checks.descending, (MU - 2,), V, f"x[2]: got -1.0, {DESCENDING}"),
    (_checks.descending, (jnp.array([2.0, NAN, 1.0]),), V, f"x[1]: got nan, {DESCENDING}"),
    (_checks.strengths, (MU[:2], MU), V, "x: got 2, expected 3, one per value; estimate "
     "them from the same values."),
    (_checks.sizes, ((),), V, "x: got no size, expected one per source; pass at least "
     "one."),
    (_checks.sizes, ((2, 0),), V, "x[1]: got 0, expected an int of at least 1; pass the "
     "sources' widths."),
    (_checks.sources, ((),), V, f"x: got no source, {TUPLE}pass at least one."),
    (_checks.sources, (E,), T, f"x: got an array of shape (6, 3), {TUPLE}put a single "
     "source in a tuple: (source,)."),
    (_checks.sources, (1.0,), T, f"x: got a float, {TUPLE}put a single source in a tuple: "
     "(source,)."),
    (_checks.sources, ((E,), Spectrum), T, "x[0]: got an array of shape (6, 3), expected a "
     "Spectrum; see spectrum_of and decompose."),
    (_checks.embeddings, ((E, MU),), V, f"x[1]: got an array of shape (3,), {MATRIX}reshape "
     "it, or use jax.vmap over a batch."),
    (_checks.embeddings, ((E, E, F),), V, "x[0] and x[2]: got 6 rows in x[0], 5 rows in "
     "x[2], expected the same words in the same order; align the vocabularies first."),
    (_checks.count, ((1.0,), 2), V, "x: got 1 entries, expected 2, one per source; pass "
     "one per source."),
    (_checks.numbers_per_source, (2.0, [3]), T, "x: got a float, expected 1 entries, one "
     "per source; pass a tuple."),
    (_checks.numbers_per_source, (jnp.array(2.0), [3]), V, "x: got a scalar, expected 1 "
     "entries, one per source; pass a tuple."),
    (_checks.numbers_per_source, ((jnp.ones(2),), [3]), V, "x[0]: got shape (2,), expected "
     "() or (3,); pass a scalar or one weight per dimension."),
    (_checks.one_of, ("a", ("b", "c")), V, "x: got 'a', expected one of 'b', 'c'; choose "
     "one."),
]  # fmt: skip


@pytest.mark.parametrize(("check", "arguments", "error", "message"), BAD)
def test_messages(check, arguments, error, message):
    with pytest.raises(error) as raised:
        check("x", *arguments)
    assert str(raised.value).replace("int64", "int32") == message


@pytest.mark.parametrize(
    ("value", "limits", "error", "message"),
    [
        (4, {"least": 1, "most": 3, "of": "it"}, V, "k: got 4, expected 1 to 3; it has 3."),
        (0, {"least": 1}, V, "k: got 0, expected at least 1; pass 1 or more."),
        (2.0, {"least": 1}, T, "k: got a float, expected an int; sizes are static: pass a "
         "Python int."),
        (True, {"least": 1}, T, "k: got a bool, expected an int; sizes are static: pass a "
         "Python int."),
    ],
)  # fmt: skip
def test_integers(value, limits, error, message):
    with pytest.raises(error) as raised:
        _checks.integer("k", value, **limits)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("value", "shape", "error", "message"),
    [
        (jnp.ones((6, 1), bool), (6, 2), V, f"got shape (6, 1), expected (6, 2); {WHETHER}"),
        (E, (6, 3), T, f"got dtype float32, expected an array of bool; {WHETHER}"),
        ([[True]], (1, 1), T, f"got a list, expected an array of bool; {WHETHER}"),
        (jnp.ones((6, 2), bool), (6,), V, "got shape (6, 2), expected (6,); pass "
         "present[w], whether the source has word w."),
    ],
)  # fmt: skip
def test_present(value, shape, error, message):
    with pytest.raises(error) as raised:
        _checks.present(value, *shape)
    assert str(raised.value) == f"present: {message}"


def test_names_in_any_case():
    names = ("default", "DW-blocks", "1TON", "1TON+")
    for value in ("dw blocks", "DW, blocks", "dw_blocks", "DWblocks"):
        assert _checks.named("name", value, names) == "DW-blocks"
    for value, found in (("DEFAULT", names[0]), ("1ton+", names[3])):
        assert _checks.named("name", value, names) == found
    with pytest.raises(V, match=r"got 'DW block', expected one of .*; choose one: 'DW-blocks' is"):
        _checks.named("name", "DW block", names)
    with pytest.raises(T, match=r"name: got a tuple, .* pass a string: it comes before"):
        _checks.named("name", (E,), names)
    with pytest.raises(V, match="; choose one: 'zero' is the nearest"):
        _checks.one_of("missing", "Zeros", ("zero", "mean"))


@pytest.mark.parametrize(
    ("old", "new"), [*plan_files.RENAMED.items(), ("1TON as released", "1TON-released")]
)
def test_old_names_work_or_lead_to_new_ones(old, new):
    if "as released" in old or "rows" in old:
        with pytest.raises(V, match=f"; choose one: {new!r} is the nearest."):
            _checks.named("name", old, METHODS)
    else:
        assert _checks.named("name", old, METHODS) == new


def test_names_can_be_typed():
    for name in (*METHODS, *WEIGHTINGS, *RULES):
        assert re.fullmatch(r"[A-Za-z0-9]+(-[A-Za-z0-9]+)*\+?", name)


def test_no_two_methods_are_one_in_any_case():
    assert [_checks.named("name", name.upper(), METHODS) for name in METHODS] == list(METHODS)


def test_what_is_no_array_but_has_one():
    vectors = Vectors(("a", "b"), np.eye(2, dtype=np.float32))
    aligned = align((vectors, vectors))
    cases = (
        ("sources: got an Aligned, .*; pass its .sources", lambda: concatenate(aligned)),
        (r"sources\[1\]: got a Vectors, .*; pass its .matrix", lambda: concatenate((E, vectors))),
        ("sources: got a str, .*; read files with", lambda: concatenate("a.txt")),
        (r"sources\[0\]: got a PosixPath, .*; read", lambda: concatenate((Path("a.txt"),))),
        ("sources: got an Aligned, .*; pass its .sources", lambda: moments(aligned)),
        (r"sources\[0\]: got a Vectors, .*; pass its", lambda: fit("UW", (vectors, vectors))),
        ("sources: got a Vectors, .*; pass its .matrix", lambda: meta_embedding("UW", vectors)),
        (r"sources\[0\]: got a str, .*; read files", lambda: meta_embedding("UW", ("a.txt",))),
        ("sources: got a PosixPath, .*; read files", lambda: meta_embedding("UW", Path("a.txt"))),
        ("source: got 'a.txt', .*; read a file with", lambda: similarity("a.txt", None)),
        ("source: got several sources, .*; combine them first", lambda: similarity(aligned, None)),
    )
    for message, call in cases:
        with pytest.raises(T, match=message):
            call()


def test_swapped_arguments():
    spectrum = Spectrum(jnp.eye(3)[:, :2], jnp.ones(2))
    vectors = Vectors(("a", "b"), np.eye(2, dtype=np.float32))
    cases = (
        ("name: got a tuple, .*; pass a string: it", lambda: meta_embedding((E, E), "UW")),
        ("sources: got a Plan, .*; pass the plan first", lambda: apply((E,), fit("UW", (E,)))),
        ("ideal_embedding: got a tuple, .* are swapped", lambda: pip_quadratic((E, E), E)),
        ("ideal: got a tuple, .* are swapped", lambda: bound_terms((spectrum,), spectrum, alpha=1)),
        ("path: got a Vectors, .*; pass the file first", lambda: write_vectors(vectors, "a.txt")),
    )
    for message, call in cases:
        with pytest.raises(T, match=message):
            call()


def test_weights_as_they_come():
    solution = exact_weights(pip_quadratic(E, (E, 2 * E[:, :2])))
    parts = solution.weights[:3], solution.weights[3:]
    sources = E, 2 * E[:, :2]
    for nested in (solution, [np.asarray(c).tolist() for c in parts]):
        np.testing.assert_array_equal(concatenate(sources, nested), concatenate(sources, parts))
    both = per_source(pip_quadratic(E, sources), sizes=(3, 2))
    shared = exact_weights(both)
    expected = concatenate(sources, tuple(shared.weights))
    np.testing.assert_array_equal(concatenate(sources, shared), expected)
    spectra = tuple(Spectrum(jnp.eye(6)[:, :k], jnp.ones(k)) for k in (3, 2))
    found = [bound_terms(spectra[0], spectra, c, alpha=0.5).tight for c in (solution, parts)]
    assert found[0] == found[1]
    with pytest.raises(V, match=r"weights: got 5 entries, expected 2, one per source"):
        concatenate(sources, solution.weights)


def test_offsets():
    with pytest.raises(V, match="offsets: got none, expected a tuple"):
        _checks.offsets(())
    with pytest.raises(V, match="offsets: got a csr_array, expected a tuple"):
        _checks.offsets(scipy.sparse.csr_array(jnp.eye(2)))


def test_what_is_right_passes():
    _checks.array("x", E, 2)
    _checks.scalar("x", jnp.array(1.0))
    _checks.integer("x", 3, least=1, most=3)
    _checks.descending("x", jnp.array([1.0, 1.0, 0.0]))
    _checks.embeddings("x", [E, E[:, :1]])
    _checks.numbers_per_source("x", (1.0, jnp.ones(3)), [2, 3])
    _checks.present(jnp.ones((6, 2), bool), 6, 2)


def test_values_are_checked_before_a_trace_and_not_within(compilations):
    checked = _checks.checked(lambda _, *, sigma: _checks.positive("sigma", sigma))
    double = checked(lambda x, *, sigma: x * sigma)
    with pytest.raises(V, match=r"sigma: got -1\.0"):
        double(MU, sigma=-1.0)
    assert not compilations
    assert jax.jit(lambda sigma: double(MU, sigma=sigma))(-1.0)[0] == -3
    double(MU, sigma=2.0)
    compilations.clear()
    double(MU, sigma=3.0)
    assert not compilations


@pytest.mark.parametrize("compiled", [False, True])
def test_other_byte_orders_raise_always(compiled):
    """To a program that is compiled their bytes are other numbers, without a word."""
    total = _checks.checked()(lambda x, *, by: x @ by["first"])
    x, y = np.ones((2, 3), np.float32), np.full(3, 2, np.float32)
    if compiled:
        for _ in range(2):
            assert total(x, by={"first": y}).tolist() == [6, 6]
    order = "expected the byte order of this machine; convert it with .astype"
    with pytest.raises(T, match=rf"^x: got dtype >f4, {order}"):
        total(x.astype(">f4"), by={"first": y})
    with pytest.raises(T, match=rf"^by\['first'\]: got dtype >f4, {order}"):
        total(x, by={"first": y.astype(">f4")})


def test_nan_into_integers_raises_where_it_can_be_seen():
    index = _checks.checked(discrete=True)(lambda x, *, by: jnp.argmax(x * by))
    assert index(MU, by=2.0) == 0
    with pytest.raises(V, match=r"^by: got NaN, expected numbers, for a result that is an integer"):
        index(MU, by=NAN)
    with pytest.raises(V, match=r"^x: got NaN"):
        index(MU.at[1].set(NAN), by=1.0)
    assert jax.jit(lambda by: index(MU, by=by))(NAN) == 0


def test_missing_packages_name_their_extra():
    with pytest.raises(ImportError, match=r"nowhere: got no such package.*jaxmeta\[plot\]"):
        _checks.package("nowhere", "plot")
