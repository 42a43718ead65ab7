"""Formats in binary, packed files and word lists are read right, and damage is named."""

import bz2
import gzip
import importlib
import json
import zipfile

import numpy as np
import pytest
from vector_files import PACKED, SMALL, needs, rejected, same

from jaxmeta.files import _blocks
from jaxmeta.files.vectors import Vectors, read_vectors, to_gensim, write_vectors

pytestmark = pytest.mark.one_leg


def test_word_lists(tmp_path):
    np.save(tmp_path / "v.npy", np.eye(2))
    (tmp_path / "v.words.txt").write_text("a\r\nb\r\n")
    assert read_vectors(tmp_path / "v.npy").words == ("a", "b")
    assert read_vectors(tmp_path / "v.npy", words=["x", "y"]).words == ("x", "y")
    (tmp_path / "other").write_text("p\nq")
    assert read_vectors(tmp_path / "v.npy", words=tmp_path / "other").words == ("p", "q")
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.arange(4.0).reshape(2, 2)))
    assert read_vectors(tmp_path / "columns.npy", words=["a", "b"]).matrix.tolist() == [
        [0, 1],
        [2, 3],
    ]


def test_npz_of_others(tmp_path):
    path = tmp_path / "v.npz"
    by_columns = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    np.savez_compressed(path, words=np.array(["a", "bé"]), vectors=by_columns, more=np.eye(3))
    same(read_vectors(path), Vectors(("a", "bé"), by_columns))
    np.savez(path, words=np.array([b"a", "é".encode()]), vectors=np.eye(2, dtype=">f4"))
    same(read_vectors(path), Vectors(("a", "é"), np.eye(2, dtype=np.float32)))


@needs("safetensors")
def test_safetensors(tmp_path):
    from safetensors.numpy import load_file, save_file

    path = tmp_path / "v.safetensors"
    write_vectors(path, SMALL)
    assert list(load_file(path)) == ["vectors"]
    write_vectors(path, SMALL, words=tmp_path / "list.txt")
    assert (tmp_path / "list.txt").read_text("utf-8").split("\n") == [*SMALL.words, ""]
    rejected(r"no word list .*v\.words\.txt, .*pass words=", read_vectors, path)
    same(read_vectors(path, words=tmp_path / "list.txt"), SMALL)
    save_file({"embeddings": np.eye(2), "weights": np.ones(2)}, path)
    assert read_vectors(path, words=["a", "b"]).matrix.tolist() == [[1, 0], [0, 1]]
    save_file({"a": np.eye(2), "b": np.eye(2)}, path)
    rejected("got tensors .*expected one matrix", read_vectors, path, words=["a", "b"])
    save_file({"a": np.eye(2, dtype=np.int8)}, path)
    rejected("got dtype I8, expected float16", read_vectors, path, words=["a", "b"])
    save_file({"a": np.eye(3)}, path, {"words": json.dumps(["a"])})
    rejected("got 1 words, expected 3", read_vectors, path)
    path.write_bytes(path.read_bytes()[:-5])
    rejected("no whole safetensors file", read_vectors, path)


def test_packages_that_are_missing(tmp_path, monkeypatch):
    def absent(asked):
        raise ImportError(asked)

    monkeypatch.setattr(importlib, "import_module", absent)
    path = tmp_path / "v.safetensors"
    write_vectors(path, SMALL)  # needs none
    same(read_vectors(path), SMALL)
    rejected(r"pip install 'jaxmeta\[gensim\]'", to_gensim, SMALL, error=ImportError)


def test_words_that_are_not_utf8(file, tmp_path):
    path = file(b"a 1\n\xe9t\xe9 2\n")
    message = r"line 2 \(offset 4\): got byte 0xe9 at place 0 .*pass errors='backslashreplace'"
    rejected(message, read_vectors, path)
    assert read_vectors(path, errors="backslashreplace").words == ("a", "\\xe9t\\xe9")
    assert read_vectors(path, errors="replace").words[1] == "\N{REPLACEMENT CHARACTER}t\ufffd"
    rejected("errors: got 'none'", read_vectors, path, errors="none")
    path = file(b"1 1\n\xe9 \0\0\0\0", "v.bin")
    rejected(r"offset 6: got byte 0xe9", read_vectors, path)
    np.save(tmp_path / "v.npy", np.eye(2))
    file(b"a\n\xe9\n", "v.words.txt")
    rejected(r"row 1, from 0: got byte 0xe9", read_vectors, tmp_path / "v.npy")


@pytest.mark.parametrize("length", [1, 3, 4, 6, 8, 12, 30, -2])
@pytest.mark.parametrize("block", [3, 1 << 18])
def test_truncated_binary(tmp_path, monkeypatch, length, block):
    write_vectors(tmp_path / "v.bin", SMALL)
    path = tmp_path / "cut.bin"
    path.write_bytes((tmp_path / "v.bin").read_bytes()[:length])
    monkeypatch.setattr(_blocks, "BLOCK", max(block, 4))
    rejected(r"cut\.bin(: offset \d+)?: got .*(fetch it again|pass format=)", read_vectors, path)


def test_wrong_binary(file):
    rejected("got an empty file", read_vectors, file(b"", "v.bin"))
    model = (793712314).to_bytes(4, "little") + bytes(50)
    rejected("of fastText's models take the .vec file", read_vectors, file(model, "v.bin"))
    rejected("pass format=", read_vectors, file("a 1 2\n", "v.bin"))
    for columns in (0, 10**12):
        rejected(f"got b'1 {columns}", read_vectors, file(f"1 {columns}\na ", "v.bin"))
    row = b"a " + np.ones(2, "<f4").tobytes()
    rejected("offset 14: got more data", read_vectors, file(b"1 2\n" + row + b"b", "v.bin"))
    bad = b"a " + np.array([1, np.nan], "<f4").tobytes()
    rejected("offset 6: got nan in column 1", read_vectors, file(b"1 2\n" + bad, "v.bin"))
    assert read_vectors(file(b"1 2\n" + row, "v.bin")).words == ("a",)


@pytest.mark.parametrize("block", [5, 64, 1 << 18])
def test_binary_is_told_apart_as_byte_by_byte(file, tmp_path, monkeypatch, rng, block):
    """Numbers have spaces and new lines among their bytes, and some words a new line inside."""
    matrix = rng.choice(np.frombuffer(b" \n\x20\x41", np.uint8), (60, 12)).view("<f4")
    words = [f"w{'é' * n}{i}" for i, n in enumerate(rng.integers(0, 9, 60))]
    words[7], words[30] = "a\nb", "x" * 200
    ends = rng.choice(["", "\n", "\n\n"], 60)
    content = b"60 3\n" + b"".join(
        end.encode() + word.encode() + b" " + row.tobytes()
        for end, word, row in zip(ends, words, matrix, strict=True)
    )
    monkeypatch.setattr(_blocks, "BLOCK", max(block, 6))
    given = Vectors(tuple(words), matrix.astype(np.float32))
    same(read_vectors(file(content, "v.bin")), given)
    same(read_vectors(file(content, "v.bin"), limit=31), Vectors(given.words[:31], matrix[:31]))
    words[7] = "ab"
    write_vectors(tmp_path / "w.bin", (words, matrix))
    rows = (w.encode() + b" " + row.tobytes() + b"\n" for w, row in zip(words, matrix, strict=True))
    assert (tmp_path / "w.bin").read_bytes() == b"60 3\n" + b"".join(rows)


def test_binary_without_spaces_is_given_up(file, monkeypatch):
    monkeypatch.setattr(_blocks, "LONGEST", 100)
    path = file(b"9 1\n" + b"x" * 2_000_000, "v.bin")
    rejected("offset 4: got 0 rows, and then its end or no word", read_vectors, path)
    path = file(b"x" * 2_000_000)
    rejected("bytes without a new line, expected text", read_vectors, path)


@pytest.mark.parametrize("suffix", [*PACKED, ".npz"])
@pytest.mark.parametrize("how", ["cut", "head", "middle"])
def test_damaged_files(tmp_path, rng, suffix, how):
    given = Vectors(tuple(map(str, range(500))), rng.normal(size=(500, 9)).astype(np.float32))
    path = tmp_path / f"v{suffix}"
    write_vectors(path, given)
    data = path.read_bytes()
    half = len(data) // 2
    damaged = {
        "cut": data[:half],
        "head": bytes(10) + data[10:],
        "middle": data[:half] + bytes(50) + data[half + 50 :],
    }
    path.write_bytes(damaged[how])
    rejected(r"v\..*: got .*truncated or damaged: fetch it again", read_vectors, path)


def test_archives_with_several_files(tmp_path):
    path = tmp_path / "v.txt.zip"
    for names, got in (((), "no file"), (("a.txt", "b.txt"), "several files")):
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "a 1\n")
        rejected(rf"zip: got {got}, .*unpack the one", read_vectors, path)


def test_wrong_arrays(tmp_path, file):
    path = tmp_path / "v.npy"
    np.save(path, np.eye(3))
    rejected(r"got no word list .*v\.words\.txt", read_vectors, path)
    rejected("got 2 words, expected 3", read_vectors, path, words=["a", "b"])
    rejected("got 5 words, expected 3", read_vectors, path, words=list("abcde"))
    file("a\nb\n", "v.words.txt")
    rejected("got 2 words, expected 3, one for each row", read_vectors, path)
    file("a\n\nc\n", "v.words.txt")
    rejected("row 1, from 0: got an empty word", read_vectors, path)
    abc = {"words": ["a", "b", "c"]}
    np.save(path, np.diag([1, np.inf, 1]))
    rejected("row 1, from 0: got inf in column 1", read_vectors, path, **abc)
    np.save(path, np.eye(3) * 1e300)
    rejected("got 1e\\+300 .*dtype=np.float64", read_vectors, path, **abc, dtype=np.float32)
    for wrong, message in (
        (np.ones(3), r"got shape \(3,\), expected a matrix"),
        (np.ones((0, 3)), r"got shape \(0, 3\)"),
        (np.ones((3, 3), int), "got dtype int64, expected float16"),
    ):
        np.save(path, wrong)
        rejected(message, read_vectors, path, **abc)
    np.save(path, np.eye(3))
    path.write_bytes(path.read_bytes()[:-20])
    rejected("no whole .npy file", read_vectors, path, **abc)
    path.write_bytes(b"")
    rejected("no whole .npy file", read_vectors, path, **abc)
    path = tmp_path / "v.npz"
    np.savez(path, x=np.eye(2))
    rejected("got arrays x, expected words and vectors", read_vectors, path)
    np.savez(path, words=np.array(["a"]), vectors=np.eye(2))
    rejected("got 1 words, expected 2", read_vectors, path)
    np.savez(path, words=np.array(["a", "b", "c"]), vectors=np.eye(2))
    rejected("got 3 words, expected 2", read_vectors, path)
    np.savez(path, words=np.array(["a", "b"], object), vectors=np.eye(2))
    rejected(r"words: got dtype object, expected strings", read_vectors, path)
    np.savez(path, words=np.array(["a", "b"]), vectors=np.ones(2))
    rejected(r"got shape \(2,\), expected a matrix", read_vectors, path)


def test_googlenews(data):
    found = read_vectors(data / "googlenews-26k-300d.bin")
    assert found.matrix.shape == (26_423, 300)
    assert found.matrix.dtype == np.float32
    norms = np.linalg.norm(found.matrix.astype(np.float64), axis=1)
    np.testing.assert_allclose(norms, 1, atol=300 * np.finfo(np.float32).eps)


def test_minilm(data):
    path = data / "minilm-input-22k-384d.npz"
    found = read_vectors(path)
    assert found.matrix.shape == (21_745, 384)
    assert found.matrix.dtype == np.float16
    with np.load(path) as stored:
        assert found.words == tuple(stored["words"].tolist())
        np.testing.assert_array_equal(found.matrix, stored["vectors"])


@pytest.mark.parametrize("suffix", PACKED)
def test_packed_files_are_what_others_unpack(tmp_path, suffix):
    path, plain = tmp_path / f"v{suffix}", tmp_path / f"v.{suffix.split('.')[1]}"
    write_vectors(path, SMALL)
    write_vectors(plain, SMALL)
    if suffix.endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            assert archive.namelist() == [plain.name]
            content = archive.read(plain.name)
    else:
        content = (gzip if suffix.endswith(".gz") else bz2).decompress(path.read_bytes())
    assert content == plain.read_bytes()
    first = path.read_bytes()
    write_vectors(path, SMALL)
    assert path.read_bytes() == first
