"""Folders that model2vec itself reads and writes."""

import importlib
import json

import numpy as np
import pytest

from jaxmeta.adapters import read_model2vec, write_model2vec
from jaxmeta.files import Vectors, as_vectors

model2vec = pytest.importorskip(
    "model2vec", reason="pip install jaxmeta[model2vec]", exc_type=ImportError
)
pytestmark = pytest.mark.one_leg

# Words with what words of vector files have: punctuation, spaces, capitals, other scripts, and
# words that are parts of others.
WORDS = (
    "the", "New York", "new", "york", "york-based", "don't", "don", "t", "'", ".", ". . .", "U.S.",
    "U", "S", "New_York", "café", "日本語", "naïve", "[UNK]", "##ing", "3.14", "@-@", "İstanbul",
    "—", "a\u0301", "e-mail", "mail", "http://x.org/?q=1", "😀", "<s>", "x\ty",
)  # fmt: skip
LOWER = ("the", "new york", "new", "york", "don't", "cat", ".", "straße", "e-mail", "mail")


@pytest.fixture
def made(rng):
    def make(words, dtype=np.float32):
        return Vectors(tuple(words), rng.normal(size=(len(words), 5)).astype(dtype))

    return make


@pytest.fixture
def load(tmp_path):
    def write_and_load(vectors, **settings):
        write_model2vec(tmp_path / "model", vectors, **settings)
        return model2vec.StaticModel.from_pretrained(tmp_path / "model")

    return write_and_load


def same(found, expected):
    assert found.words == expected.words
    assert found.matrix.dtype == expected.matrix.dtype
    np.testing.assert_array_equal(found.matrix, expected.matrix)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("words", [WORDS, LOWER])
def test_a_word_is_encoded_by_its_row(made, load, words, dtype):
    given = made(words, dtype)
    model = load(given)
    found = model.encode(list(given.words))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, given.matrix)
    same(read_model2vec(model), given)


def test_a_text_is_encoded_by_the_mean_of_its_words(made, load):
    given = made(WORDS)
    model = load(given)
    row = dict(zip(*given, strict=True))
    texts = {
        'the York, the "New York".': ["the", "the", "New York", "."],
        "york-based e-mail (new mail), don't.": [
            "york-based", "e-mail", "new", "mail", "don't", ".",
        ],
        "nonsense New Yorker U.S. U.S.A": ["U.S.", "U", ".", "S", "."],
        " the\n\nnew ": ["the", "new"],
        "": [],
        "Unknown Words": [],
    }  # fmt: skip
    found = model.encode(list(texts))
    for text, own, words in zip(texts, found, texts.values(), strict=True):
        expected = np.mean([row[w] for w in words], axis=0) if words else np.zeros(5)
        np.testing.assert_allclose(own, expected, atol=1e-6, err_msg=text)


def test_capitals_count_only_where_words_have_them(made, load, tmp_path):
    given = made(LOWER)
    model = load(given)
    np.testing.assert_array_equal(model.encode(["THE", "New York"]), given.matrix[:2])
    write_model2vec(tmp_path / "cased", made((*LOWER, "THE")))
    cased = model2vec.StaticModel.from_pretrained(tmp_path / "cased")
    np.testing.assert_array_equal(cased.encode(["Cat"]), np.zeros((1, 5), np.float32))


def test_no_text_is_too_long(made, load):
    given = made(("a", "b"), np.float64)
    found = load(given).encode(["a " * 3000 + "b " * 1000])
    np.testing.assert_allclose(found[0], given.matrix.T @ [0.75, 0.25], rtol=1e-12)


def test_rows_of_length_one(made, load):
    given = made(LOWER)
    model = load(given, normalize=True)
    found = model.encode(["the", "the cat", "nothing"])
    expected = given.matrix[0], (given.matrix[0] + given.matrix[5]) / 2
    for row, one in zip(found, expected, strict=False):
        np.testing.assert_allclose(row, one / np.linalg.norm(one), rtol=1e-6)
    assert not found[2].any()
    same(read_model2vec(model), given)  # the table is as it was


def test_folders_of_others_are_read(made, load, tmp_path):
    """What `save_pretrained` writes: quantised models have weights and a map."""
    given = made(WORDS)
    model = load(given)
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    places = np.arange(len(WORDS) + 1) % 3
    weights = np.linspace(0.5, 2, len(WORDS) + 1, dtype=np.float32)
    for dtype in (np.float32, np.int8):
        quantised = model2vec.StaticModel(
            table.astype(dtype), model.tokenizer, weights=weights, token_mapping=places
        )
        quantised.save_pretrained(tmp_path / dtype.__name__)
        found = read_model2vec(tmp_path / dtype.__name__)
        assert found.words == WORDS
        assert found.matrix.dtype == np.float32
        expected = (table[places] * weights[:, None])[:-1]
        np.testing.assert_allclose(found.matrix, expected, rtol=1e-6)
        np.testing.assert_allclose(quantised.encode(list(WORDS)), expected, rtol=1e-6)
    same(read_model2vec(tmp_path / "model"), given)
    same(as_vectors(read_model2vec(str(tmp_path / "model"))), given)


def test_a_tokenizer_without_an_unknown_token():
    from tokenizers import Tokenizer
    from tokenizers.models import BPE

    tokenizer = Tokenizer(BPE({"a": 0, "b": 1}, []))
    model = model2vec.StaticModel(np.eye(2, dtype=np.float32), tokenizer)
    same(read_model2vec(model), Vectors(("a", "b"), np.eye(2, dtype=np.float32)))


def test_a_folder_is_written_whole_or_not_at_all(made, tmp_path, monkeypatch):
    from safetensors import numpy

    given = made(LOWER)

    def fails(*_):
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(numpy, "save_file", fails)
        with pytest.raises(OSError, match="no space"):
            write_model2vec(tmp_path / "deep" / "model", given)
    assert not list((tmp_path / "deep").iterdir())
    (tmp_path / "empty").mkdir()
    write_model2vec(tmp_path / "empty", given)
    names = {path.name for path in (tmp_path / "empty").iterdir()}
    assert names == {"model.safetensors", "tokenizer.json", "config.json", "modules.json"}
    config = json.loads((tmp_path / "empty" / "config.json").read_text())
    assert config == {"normalize": False, "max_length": None, "embedding_dtype": "float32"}
    (tmp_path / "file").touch()
    for taken in ("empty", "file"):
        with pytest.raises(ValueError, match="which has files, expected a new or an empty folder"):
            write_model2vec(tmp_path / taken, given)
    assert {path.name for path in tmp_path.iterdir()} == {"deep", "empty", "file"}


@pytest.mark.parametrize("word", ["", " ", " a", "a ", "\n"])
def test_words_that_no_text_can_hold_are_refused(made, tmp_path, word):
    with pytest.raises(ValueError, match=r"words\[1\]: got .*expected words that can be found"):
        write_model2vec(tmp_path / "model", made(("the", word)))
    assert not list(tmp_path.iterdir())


def test_what_is_not_there(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="expected a folder that is there"):
        read_model2vec(tmp_path / "none")

    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ImportError, match=r"pip install 'jaxmeta\[model2vec\]'"):
        read_model2vec(tmp_path)
    with pytest.raises(ImportError, match=r"pip install 'jaxmeta\[model2vec\]'"):
        write_model2vec(tmp_path / "model", (("a",), np.eye(1)))
