"""Encoders of texts together: functions, models of model2vec, and the forms that others expect."""

import re
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeta.adapters import Encoders, write_model2vec
from jaxmeta.covariance import moments
from jaxmeta.methods import Settings, apply, fit

pytestmark = pytest.mark.slow

KEYED = Settings(key=jax.random.key(0), epochs=2)
WORDS = (
    "the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "tree", "café", "日本語", "don't",
    "😀",
)  # fmt: skip


def counts(texts):
    """How many of each letter: five columns."""
    return np.array([[text.count(letter) for letter in "aeiot"] for text in texts], np.float32)


def lengths(texts):
    return np.array([[len(text), text.count(" "), 1] for text in texts], np.float32)


BOTH = counts, lengths


@pytest.fixture
def texts(rng):
    return [" ".join(rng.choice(WORDS, 1 + i % 7)) for i in range(50)]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    model2vec = pytest.importorskip(
        "model2vec", reason="pip install jaxmeta[model2vec]", exc_type=ImportError
    )
    folder, rng = tmp_path_factory.mktemp("models"), np.random.default_rng(0)
    found = []
    for width in (5, 3):
        vectors = WORDS, rng.normal(size=(len(WORDS), width)).astype(np.float32)
        write_model2vec(folder / str(width), vectors)
        found.append(model2vec.StaticModel.from_pretrained(folder / str(width)))
    return tuple(found)


def close(found, expected, atol=2e-6):
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, np.asarray(expected), rtol=2e-5, atol=atol)


@pytest.mark.parametrize(("name", "settings"), [("default", Settings(k=0.05)), ("UW", None)])
def test_it_is_the_library(texts, models, name, settings):
    """Fitted block by block to half of the texts, and applied to the others."""
    rows = [model.encode(texts) for model in models]
    half, rest = moments(tuple(own[::2] for own in rows)), tuple(jnp.array(x[1::2]) for x in rows)
    both = Encoders.fit(name, models, texts[::2], settings, batch_size=7)
    found, expected = both.encode(texts[1::2]), apply(fit(name, half, settings), rest)
    assert found.shape == expected.shape == (25, both.plan.width)
    # Axes may turn, or change their signs; inner products do not.
    close(found @ found.T, expected @ expected.T, atol=2e-4)


def test_autoencoders_see_all_rows(texts, models):
    settings = KEYED
    both = Encoders.fit("CAEME", models, iter(texts), settings, batch_size=20)
    rows = tuple(jnp.asarray(model.encode(texts)) for model in models)
    close(both.encode(texts), apply(fit("CAEME", rows, settings), rows))
    assert both.encode([]).shape[0] == 0


@pytest.mark.one_leg
def test_batches_do_not_matter(texts):
    both = Encoders.fit("default", BOTH, texts)
    expected = both.encode(texts)
    for size in (1, 7, 50, 1000):
        close(both.encode(texts, batch_size=size), expected)
        again = Encoders.fit("default", BOTH, texts, batch_size=size)
        close(again.encode(texts), expected, atol=1e-5)
    order = np.random.default_rng(1).permutation(50)
    close(both.encode([texts[i] for i in order]), expected[order])
    close(both.encode(texts[3]), expected[3])
    assert both.encode(texts[3]).ndim == 1


@pytest.mark.one_leg
def test_there_are_few_programs(texts, compilations):
    both = Encoders.fit("UW", BOTH, texts)
    before = len(compilations)
    for count in range(1, 51):
        assert len(both.encode(texts[:count], batch_size=16)) == count
    # For 1, 2, 4, 8 and 16 rows: the plan, and what brings the rows of each encoder to the device.
    assert len(compilations) - before <= 5 * 3


@pytest.mark.one_leg
def test_forms_of_texts(texts):
    both = Encoders.fit("UW", BOTH, (text for text in texts))
    expected = np.hstack([encode(texts) for encode in BOTH])
    batches = [{"text": texts[:30], "title": [""] * 30}, {"text": texts[30:]}]
    for given in (texts, tuple(texts), iter(texts), np.array(texts), batches):
        np.testing.assert_array_equal(both.encode(given), expected)
    for given in (tuple(texts), np.array(texts), batches):
        assert Encoders.fit("UW", BOTH, given).plan.widths == (5, 3)
    empty = both.encode([])
    assert (empty.shape, empty.dtype) == ((0, 8), np.float32)
    np.testing.assert_array_equal(
        both.encode(["", "日本 a"]), [[0] * 7 + [1], [1] + [0] * 4 + [4, 1, 1]]
    )
    again = Encoders.fit("UW", (both, counts), texts)
    np.testing.assert_array_equal(
        again.encode(texts[:2]), np.hstack([expected, expected[:, :5]])[:2]
    )


def test_dtypes(texts):
    def wide(texts):
        return counts(texts).astype(np.float64)

    def whole(texts):
        return counts(texts).astype(np.int32)

    def half(texts):
        return lengths(texts).astype(np.float16).tolist()  # a list is as good as a matrix

    widest = jnp.zeros(()).dtype
    assert Encoders.fit("UW", (counts, lengths), texts).encode(texts).dtype == np.float32
    for encoders in ((wide, counts), (counts, whole), (wide, half)):
        both = Encoders.fit("UW", encoders, texts)
        assert both.encode(texts).dtype == widest


@pytest.mark.one_leg
def test_progress(texts):
    calls = []

    def progress(stage, fraction):
        calls.append((stage, fraction))

    both = Encoders.fit("UW", BOTH, texts, batch_size=20, progress=progress)
    assert calls == [("fit", 0.4), ("fit", 0.8), ("fit", 1.0)]
    calls.clear()
    both.encode(texts, batch_size=25, progress=progress)
    both.encode(iter(texts[:3]), progress=progress)
    both.encode("one", progress=progress)
    assert calls == [("encode", 0.5), *[("encode", 1.0)] * 3]
    calls.clear()
    Encoders.fit("UW", BOTH, iter(texts), progress=progress)  # nobody knows how many
    assert not calls


@pytest.mark.one_leg
def test_as_sentence_transformers(texts, capsys):
    both = Encoders.fit("default", BOTH, texts)
    found = both.encode(
        texts,
        batch_size=8,
        show_progress_bar=True,
        convert_to_numpy=True,
        normalize_embeddings=True,
    )
    assert re.search(r"encode .* 100%", capsys.readouterr().err)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)
    plain = both.encode(texts, show_progress_bar=None, convert_to_tensor=False)
    assert not capsys.readouterr().err
    close(found, plain / np.linalg.norm(plain, axis=1, keepdims=True))
    close(both.similarity(plain, plain[:3]), found @ found[:3].T)
    close(both.similarity(plain[0], plain[1]), found[:1] @ found[1:2].T)
    close(both.similarity_pairwise(plain[:9], plain[9:18]), np.sum(found[:9] * found[9:18], axis=1))
    nothing = np.zeros_like(plain[:1])
    assert both.similarity(nothing, plain[:2]).tolist() == [[0, 0]]
    for told in ({"prompt_name": "query"}, {"convert_to_tensor": True}, {"precision": "int8"}):
        with pytest.raises(TypeError, match=f"encode: got {next(iter(told))}=.*no such argument"):
            both.encode(texts, **told)


@runtime_checkable
class Encoder(Protocol):
    """What mteb asks of an encoder: mteb/models/models_protocols.py, EncoderProtocol."""

    def encode(self, inputs, *, task_metadata, hf_split, hf_subset, prompt_type=None, **kwargs): ...

    def similarity(self, embeddings1, embeddings2): ...

    def similarity_pairwise(self, embeddings1, embeddings2): ...

    @property
    def mteb_model_meta(self): ...


@pytest.mark.one_leg
def test_as_mteb(texts):
    class Loader:
        """Batches of a DataLoader: its length is not that of the texts."""

        def __len__(self):
            return 5

        def __iter__(self):
            return ({"text": texts[i : i + 10], "id": list(range(10))} for i in range(0, 50, 10))

    both = Encoders.fit("default", BOTH, Loader())
    assert isinstance(both, Encoder)
    assert both.mteb_model_meta is None  # then it makes one up
    found = both.encode(
        Loader(),
        task_metadata=object(),
        hf_split="test",
        hf_subset="default",
        prompt_type="query",
        batch_size=16,
        show_progress_bar=False,
        precision="float32",
    )
    close(found, both.encode(texts))


@pytest.mark.one_leg
def test_encoders_that_are_wrong(texts):
    both = Encoders.fit("UW", BOTH, texts)

    def fails(encoder, message, error=ValueError):
        with pytest.raises(error, match=message):
            Encoders.fit("UW", (counts, encoder), texts)
        with pytest.raises(error, match=message):
            Encoders((counts, encoder), both.plan).encode(texts)

    fails(
        lambda texts: lengths(texts)[1:], r"encoders\[1\]: got shape \(31, 3\), expected a row for"
    )
    fails(lambda texts: lengths(texts)[0], r"encoders\[1\]: got shape \(3,\), expected a row for")
    fails(lambda _: None, r"encoders\[1\]: got shape \(\)")
    fails(None, r"encoders\[1\]: got a NoneType, expected a function, or a model with", TypeError)

    def hole(value):
        def encode(texts):
            rows = lengths(texts).astype(np.float64)
            rows[[text == given for text in texts], 0] = value
            return rows

        given = "the cat sat on the café mat " * 4
        texts[40] = given
        return encode

    for value in (np.nan, np.inf, 1e300):  # the last is infinite in 32 bit
        fails(
            hole(value), r"encoders\[1\]: got NaN or infinity for text 40, 'the cat sat on the ca"
        )

    def changing(texts):
        return np.ones((len(texts), len(texts)), np.float32)

    with pytest.raises(
        ValueError, match=r"encoders: got widths \(5, 18\) from text 32 on, expected"
    ):
        Encoders.fit("UW", (counts, changing), texts)
    with pytest.raises(
        ValueError, match=r"got widths \(3, 5\), expected \(5, 3\), those of the plan"
    ):
        Encoders(BOTH[::-1], both.plan).encode(texts)
    with pytest.raises(
        ValueError, match=r"got widths \(5,\), expected \(5, 3\), those of the plan"
    ):
        Encoders(BOTH[:1], both.plan).encode(texts)


@pytest.mark.one_leg
def test_what_is_refused(texts):
    def never(_):
        raise AssertionError

    for name, encoders, given, settings, message, error in (
        ("none", [never], texts, {}, "name: got 'none'", ValueError),
        ("LLE", [never], texts, {}, "name: got 'LLE'.*use a linear method", ValueError),
        ("UW", never, texts, {}, "encoders: got a function.*put a single", TypeError),
        ("UW", [], texts, {}, "encoders: got no source", ValueError),
        ("UW", [never], [], {}, "texts: got none, expected some texts", ValueError),
        (
            "CAEME",
            [never],
            iter(()),
            {"settings": KEYED},
            "texts: got none, expected some texts",
            ValueError,
        ),
        ("UW", [never], "text", {}, "texts: got one text, expected a list", TypeError),
        ("UW", [never], ["a", None], {}, "texts: got a NoneType among them", TypeError),
        ("UW", [never], texts, {"batch_size": 0}, "batch_size: got 0", ValueError),
    ):
        with pytest.raises(error, match=message):
            Encoders.fit(name, encoders, given, **settings)
    both = Encoders.fit("UW", BOTH, texts)
    with pytest.raises(TypeError, match="texts: got a tuple among them, expected strings"):
        both.encode([("a", "pair")])
    with pytest.raises(ValueError, match="batch_size: got 0"):
        both.encode(texts, batch_size=0)
    for name, field in (("DW", "sigmas"), ("CAEME", "key")):  # before anything is encoded
        with pytest.raises(ValueError, match=rf"settings\.{field}: got None, expected it for"):
            Encoders.fit(name, [never], texts)
