"""Input tables of transformers: tensors of a file, half precision, and words from a tokenizer."""

import json

import numpy as np
import pytest
from vector_files import needs, rejected, same

from jaxmeta import align, merge_files
from jaxmeta.files import DuplicateWords, _blocks, _safetensors
from jaxmeta.files.vectors import Vectors, read_vectors, write_vectors

pytestmark = pytest.mark.one_leg

TABLE = np.array([[0.5, -1.25], [3, 1.5], [-0.0, 2.0**100], [7, -8]], np.float32)
NAME = "embeddings.word_embeddings.weight"


def written(path, tensors, metadata=()):
    """Write tensors of a kind and an array of its bytes, without the package."""
    with path.open("wb") as file:
        shapes = {name: (kind, array.shape) for name, (kind, array) in tensors.items()}
        _safetensors.write_header(file, shapes, dict(metadata))
        for _, array in tensors.values():
            file.write(array.tobytes())
    return path


def halved(array):
    """The bits of bfloat16, for numbers that it has."""
    bits = array.view(np.uint32)
    assert not (bits & 0xFFFF).any()
    return (bits >> 16).astype("<u2")


@pytest.fixture
def model(tmp_path):
    """The file of a model, with other tensors before and after the table."""
    other = np.ones((3, 3), np.float32)
    tensors = {
        "bias": ("F32", np.zeros(3, np.float32)),
        "first": ("F32", other),
        NAME: ("BF16", halved(TABLE)),
        "last": ("F32", other),
    }
    return written(tmp_path / "model.safetensors", tensors)


def tokenizer(folder, vocab, added=None, name="tokenizer.json"):
    content = {"model": {"type": "some", "vocab": vocab}}
    if added is not None:
        content["added_tokens"] = [{"id": row, "content": token} for token, row in added.items()]
    (folder / name).write_text(json.dumps(content))
    return folder / name


@pytest.mark.parametrize("block", [2, 1 << 18])
def test_one_tensor_of_several(model, monkeypatch, block):
    monkeypatch.setattr(_blocks, "BLOCK", block)
    found = read_vectors(model, tensor=NAME, words=list("abcd"))
    same(found, Vectors(tuple("abcd"), TABLE))
    assert read_vectors(model, tensor="last", words=list("abc")).matrix.shape == (3, 3)
    rejected(r"got tensors .*'first': \(3, 3\).*one matrix; pass tensor=", read_vectors, model)
    for name in ("bias", "nothing"):
        message = f"got tensors .*expected a matrix '{name}'; choose one"
        rejected(message, read_vectors, model, tensor=name, words=list("abcd"))
    half = read_vectors(model, tensor=NAME, words=list("abcd"), limit=2, dtype=np.float16)
    same(half, Vectors(("a", "b"), TABLE[:2].astype(np.float16)))
    rejected("row 2, from 0: got 1.26.*e\\+30 in column 1, expected finite numbers of float16",
             read_vectors, model, tensor=NAME, words=list("abcd"), dtype=np.float16)  # fmt: skip


def test_messages_name_some_tensors_only(tmp_path):
    tensors = {f"t{i}": ("F32", np.ones((1, 1), np.float32)) for i in range(100)}
    path = written(tmp_path / "model.safetensors", tensors)
    rejected("'t5'.* and 94 more, expected one matrix", read_vectors, path)


def test_tensors_of_other_formats(tmp_path):
    write_vectors(tmp_path / "v.npy", Vectors(tuple("abcd"), TABLE))
    message = "tensor: got 'x' for .*expected None; this format has one matrix"
    rejected(message, read_vectors, tmp_path / "v.npy", tensor="x")


@needs("safetensors")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_files_of_the_package(tmp_path, dtype):
    from safetensors.numpy import save_file

    path = tmp_path / "v.safetensors"
    save_file({"x": TABLE[:2].astype(dtype), "y": np.ones(2, np.int8)}, path)
    same(read_vectors(path, words=["a", "b"]), Vectors(("a", "b"), TABLE[:2].astype(dtype)))


@needs("safetensors")
def test_bfloat16_of_the_package(tmp_path):
    from ml_dtypes import bfloat16
    from safetensors.numpy import save_file

    path = tmp_path / "v.safetensors"
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50, 7)).astype(bfloat16)
    save_file({"x": table}, path)
    words = tuple(map(str, range(50)))
    same(read_vectors(path, words=words), Vectors(words, table.astype(np.float32)))


def test_numbers_that_are_not_finite(tmp_path):
    table = np.array([[1, 2], [np.inf, 0]], np.float32)
    path = written(tmp_path / "v.safetensors", {"x": ("BF16", halved(table))})
    rejected("row 1, from 0: got inf in column 0", read_vectors, path, words=["a", "b"])


@pytest.mark.parametrize(
    "vocab",
    [{"b": 1, "[PAD]": 0, "##a": 2, "é": 3}, [["[PAD]", 0.0], ["b", -1.5], ["##a", -2], ["é", -3]]],
)
def test_a_tokenizer_beside_the_table(model, vocab):
    tokenizer(model.parent, vocab)
    expected = Vectors(("[PAD]", "b", "##a", "é"), TABLE)
    same(read_vectors(model, tensor=NAME), expected)
    own = ["x", "y", "z", "w"]
    assert read_vectors(model, tensor=NAME, words=own).words == tuple(own)
    model.with_suffix(".words.txt").write_text("p\nq\nr\ns\n")
    assert read_vectors(model, tensor=NAME).words == ("p", "q", "r", "s")
    beside = model.with_name("tokenizer.json")
    same(read_vectors(model, tensor=NAME, words=beside), expected)
    np.save(model.with_name("table.npy"), TABLE)
    same(read_vectors(model.with_name("table.npy"), words=str(beside)), expected)


@pytest.mark.parametrize("block", [2, 1 << 18])
def test_rows_of_no_token(model, monkeypatch, block):
    monkeypatch.setattr(_blocks, "BLOCK", block)
    tokenizer(model.parent, {"": 1, "a": 2}, {"<s>": 0})
    found = read_vectors(model, tensor=NAME)
    same(found, Vectors(("<s>", "a"), TABLE[[0, 2]]))
    bad = np.array([[1, 1], [2, np.nan], [np.nan, 0], [3, 3]], np.float32)
    path = written(model, {"x": ("F32", bad)})
    message = "row 2, from 0: got nan in column 0"
    rejected(message, read_vectors, path)  # that of "", which is not read, does not matter


def test_tokens_that_come_again(model):
    tokenizer(model.parent, {"a": 0, "b": 1}, {"b": 1, "a": 3})
    with pytest.warns(DuplicateWords, match="1 rows repeat a word"):
        found = read_vectors(model, tensor=NAME)
    assert found.words == ("a", "b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"tokenizer\.json: got no tokens \(JSONDecodeError.*fetch it again"),
        ("[]", "got no tokens"),
        ("{}", "got no tokens .*'model'"),
        ('{"model": {}}', "got no tokens .*'vocab'"),
        ('{"model": {"vocab": {}}}', "got no tokens"),
        ('{"model": {"vocab": 3}}', "got no tokens"),
        ('{"model": {"vocab": {"a": "b"}}}', "got no tokens .*have no number"),
        ('{"model": {"vocab": {"a": true}}}', "got no tokens .*have no number"),
        ('{"model": {"vocab": {"a": -1}}}', "got no tokens .*numbers below 0"),
        ('{"model": {"vocab": [[1, 2]]}}', "got no tokens .*no text"),
        ('{"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 1}]}', "got no tokens .*content"),
        ('{"model": {"vocab": {"a": 0, "b": 0}}}', "got 'a' and 'b' of number 0, expected one"),
        (
            '{"model": {"vocab": {"a": 4}}}',
            "tokens up to number 4, expected 4 rows, those of",
        ),
    ],
)
def test_tokenizers_that_are_wrong(model, content, message):
    model.with_name("tokenizer.json").write_text(content)
    rejected(message, read_vectors, model, tensor=NAME)


def test_no_words_at_all(model):
    message = r"no word list .*model\.words\.txt, .*or a tokenizer\.json"
    rejected(message, read_vectors, model, tensor=NAME)
    rejected("no word list .*absent", read_vectors, model, tensor=NAME, words="absent.json")


@needs("tokenizers")
def test_tokenizers_of_the_package(model):
    from tokenizers import Tokenizer, models

    made = Tokenizer(models.WordPiece({"[UNK]": 0, "new": 1, "##er": 2}, unk_token="[UNK]"))
    made.add_special_tokens(["<pad>"])
    made.save(str(model.with_name("tokenizer.json")))
    assert read_vectors(model, tensor=NAME).words == ("[UNK]", "new", "##er", "<pad>")
    made = Tokenizer(models.Unigram([("<unk>", 0.0), ("\u2581a", -1.0)], unk_id=0))
    made.save(str(model.with_name("tokenizer.json")))
    assert read_vectors(model, tensor=NAME).words == ("<unk>", "\u2581a")


def test_merging_a_table_of_a_transformer(tmp_path, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK", 8)
    path = written(tmp_path / "model.safetensors", {"x": ("BF16", halved(TABLE))})
    tokenizer(tmp_path, {"a": 0, "b": 1, "d": 3})
    other = Vectors(("d", "c", "a"), np.eye(3, dtype=np.float32))
    write_vectors(tmp_path / "other.txt", other)
    merge_files([tmp_path / "other.txt", path], tmp_path / "out.npy", vocabulary="union")
    whole = align((other, read_vectors(path)), vocabulary="union")
    found = read_vectors(tmp_path / "out.npy")
    assert found.words == whole.words == ("d", "c", "a", "b")
    np.testing.assert_array_equal(found.matrix, np.hstack(whole.sources))
