"""Damaged and crafted files: read right or refused by name, at once, and in little memory."""

import bz2
import gzip
import json
import math
import os
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
from vector_files import SMALL, rejected, same

from jaxmeta import merge_files
from jaxmeta.files import merge
from jaxmeta.files.vectors import Vectors, as_vectors, read_vectors, write_vectors

pytestmark = pytest.mark.one_leg


def npz(path, kind=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                if isinstance(content, bytes):
                    member.write(content)
                else:
                    np.lib.format.write_array(member, content, allow_pickle=True)
    return path


def header(text, version=1, numbers=b"\0" * 64):
    """A .npy file with any header."""
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode("latin-1") + numbers


HEADERS = {
    "negative": "{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -4)}",
    "bools": "{'descr': '<f4', 'fortran_order': False, 'shape': (True, 16)}",
    "huge": "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 4)}",
    "beyond 64 bit": f"{{'descr': '<f4', 'fortran_order': True, 'shape': ({10**30}, 4)}}",
    "too small": "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4)}",
    "nested": "(" * 5000,
    "no text": "\xff\0",
    "many digits": "{'descr': '<f4', 'fortran_order': False, 'shape': (%s,)}" % ("9" * 9000),
    "escapes": r"{'descr': '\d<f4', 'fortran_order': False, 'shape': (4, 4)}",
    "old": "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L)}",
    "long": "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4)}" + " " * 20_000,
    "unhashable": "{[]: 1}",
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_of_arrays(file, tmp_path, name):
    content, words = header(HEADERS[name]), list("abcd")
    message = r"v\.np.: got no whole \.npy file"
    rejected(message, read_vectors, file(content, "v.npy"), words=words)
    path = npz(tmp_path / "v.npz", words=np.array(words), vectors=content)
    rejected(message, read_vectors, path)
    path = npz(tmp_path / "v.npz", words=content, vectors=np.eye(4))
    rejected(r"v\.npz(: words)?: got", read_vectors, path)


def test_other_versions_and_more_bytes(file, tmp_path):
    text = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4)}"
    assert read_vectors(file(header(text, 2), "v.npy"), words=list("abcd")).matrix.shape == (4, 4)
    for content in (header(text, 3), header(text, 9), header(text) + b"\0", header(text)[:-1]):
        path = file(content, "v.npy")
        rejected("no whole .npy file", read_vectors, path, words=list("abcd"))
    objects = np.array([[None]])
    np.save(tmp_path / "v.npy", objects, allow_pickle=True)
    rejected("got dtype object", read_vectors, tmp_path / "v.npy", words=["a"])


def test_words_of_arrays(tmp_path):
    path = tmp_path / "v.npz"
    for words, message in (
        (np.array([["a", "x"], ["b", "y"]]), r"words: got shape \(2, 2\), expected a vector"),
        (np.array("a"), r"words: got shape \(\)"),
        (np.array(["", ""], "<U0"), r"got an empty word"),
        (np.full(2, 0x7FFFFFFF, "<u4").view("<U1"), r"v\.npz: got data"),
    ):
        npz(path, words=words, vectors=np.eye(2))
        rejected(message, read_vectors, path)


def patched(path, *changes):
    """Change bytes of a file, at offsets from a mark."""
    data = bytearray(path.read_bytes())
    for mark, offset, value in changes:
        place = data.index(mark) + offset
        data[place : place + len(value)] = value
    path.write_bytes(data)
    return path


LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"
ZIP_DAMAGE = {
    "encrypted": [(LOCAL, 6, b"\1"), (CENTRAL, 8, b"\1")],
    "another method": [(LOCAL, 8, b"\x63"), (CENTRAL, 10, b"\x63")],
    "patches": [(LOCAL, 6, b"\x20"), (CENTRAL, 8, b"\x20")],
    "a version to come": [(CENTRAL, 6, b"\xff")],
    "an offset beyond": [(CENTRAL, 42, b"\xff\xff\xff\x7f")],
    "another checksum": [(CENTRAL, 16, b"\x77\x77")],
    "no name": [(CENTRAL, 28, b"\0\0")],
}


@pytest.mark.parametrize("how", ZIP_DAMAGE)
def test_archives(tmp_path, how):
    path = npz(tmp_path / "v.npz", vectors=np.eye(2), words=np.array(["a", "b"]))
    rejected(r"v\.npz: got", read_vectors, patched(path, *ZIP_DAMAGE[how]))
    path = tmp_path / "v.txt.zip"
    write_vectors(path, SMALL)
    rejected(r"v\.txt\.zip.*: got", read_vectors, patched(path, *ZIP_DAMAGE[how]))


def safetensors(text, numbers=b""):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    return len(text).to_bytes(8, "little") + text + numbers


MATRIX = {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4]}


def test_headers_of_safetensors(file, tmp_path):
    message = "v.safetensors: got no whole safetensors file"
    for text in (b"[" * 100_000, b'{"x": ' + b"9" * 10_000 + b"}", b"[]", b"\xff\xff", {"x": []}):
        path = file(safetensors(text, b"\0" * 4), "v.safetensors")
        rejected(message, read_vectors, path, words=["a"])
    secret = file("secret\n", "secret.txt")
    for words in (json.dumps(str(secret)), "[" * 100_000, '["a", 1]', "{}", "1", "null", "[[]]"):
        content = safetensors({"__metadata__": {"words": words}, "x": MATRIX}, b"\0" * 4)
        path = file(content, "v.safetensors")
        rejected("v.safetensors: got no words in its metadata", read_vectors, path)
    (tmp_path / "tokenizer.json").write_text("[" * 100_000)
    path = file(safetensors({"x": MATRIX}, b"\0" * 4), "v.safetensors")
    rejected(r"tokenizer.json: got no tokens \(RecursionError", read_vectors, path)


@pytest.mark.parametrize(
    "text",
    [
        b"a " + b"1" * 100_000 + b"x\n",
        b"a" + b" " * 300_000 + b"\nb 1\n",
        b"a 1" + b" " * 300_000 + b"\n",
        b"a 1" + b" " * 300_000 + b"b\n",
        b"a 1 " + b" \r" * 100_000 + b"\n",
        b"a " + b"1 " * 100_000 + b"x 1\n",
        b"9" * 100_000 + b" " + b"9" * 100_000 + b"\na 1\n",
        b"a 1\n" + b"b 0." + b"3" * 100_000 + b"\n",
        b"a 1\n" + b"b 1e" + b"3" * 100_000 + b"\n",
        b"a 1\n" + b"\n" * 300_000,
    ],
    ids=lambda text: repr(text[:6]),
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_parsing_is_linear(file, text, pack):
    path = file(pack(text), "v.txt" if pack is bytes else "v.txt.gz")
    start, said = time.process_time(), str(path)
    try:
        read_vectors(path)
    except ValueError as error:
        said = str(error)
    assert said.startswith(str(path))
    assert len(said) < 1000
    assert time.process_time() - start < 2


ROWS = b"w1 0.11 0.12 0.13\nw2 0.21 0.22 0.23\nw3 0.31 0.32 0.33\nw4 0.41 0.42 0.43\n"


@pytest.mark.parametrize("row", range(1, 5))
@pytest.mark.parametrize("start", [b"", b"4 3\n"], ids=["glove", "word2vec"])
def test_a_lost_new_line_loses_no_row(file, start, row):
    lines = (start + ROWS).split(b"\n")
    lost = b"\n".join(lines[:row]) + b"\n".join([b"", *lines[row:]])[1:]
    if row == 4 and not start:
        assert len(read_vectors(file(lost)).words) == 4
    else:
        rejected(r"v\.txt: line \d+.*: got", read_vectors, file(lost))


def test_a_lost_new_line_after_the_header(file):
    message = r"line 1 .*got b'4 3w1', expected a word, or a header"
    rejected(message, read_vectors, file(b"4 3" + ROWS))
    other = b"4 5th 0.1 0.2 0.3\n" + ROWS
    assert read_vectors(file(other)).words[0] == "4 5th"


def test_ends_of_lines(file):
    message = r"line 1 \(offset 0\): got a carriage return inside"
    rejected(message, read_vectors, file(ROWS.replace(b"\n", b"\r")))
    rejected(r"line 2 \(offset 6\): got a carriage", read_vectors, file(b"a 1e5\nb \r\r\n"))
    rejected(r"line 2 .*got a carriage", read_vectors, file(b"a 1 2\r\nb\rc 3 4\r\n"))
    assert read_vectors(file(b"a 1 2\nb\rc 3 4\n"), limit=1).words == ("a",)
    assert len(read_vectors(file(ROWS.replace(b"\n", b"\r\n"))).words) == 4
    assert read_vectors(file(b"a 1 2" + b" " * 9 + b"\nb 3 4 \n")).words == ("a", "b")


def test_a_mark_of_the_byte_order_is_no_part_of_a_word(file, tmp_path):
    mark = "\N{ZERO WIDTH NO-BREAK SPACE}"
    for start in ("", "2 2\n"):
        found = read_vectors(file(mark + start + "a 1 2\nb 3 4\n"))
        assert found.words == ("a", "b")
    message = r"line 2 \(offset 9\): got 1 numbers"
    rejected(message, read_vectors, file(mark + "a 1 2\nb 3\nc 1 2\n"))
    np.save(tmp_path / "v.npy", np.eye(2))
    assert read_vectors(tmp_path / "v.npy", words=file(mark + "a\nb\n", "list")).words == ("a", "b")
    marked = Vectors((f"{mark}a", "b"), SMALL.matrix[:2])
    for name in ("v.txt", "v.npz", "v.safetensors"):
        write_vectors(tmp_path / name, marked)
        same(read_vectors(tmp_path / name), marked)
    for name in ("v.glove", "w.npy"):
        rejected(r"words\[0\]: got '\\ufeffa'", write_vectors, tmp_path / name, marked)
        write_vectors(tmp_path / name, Vectors(marked.words[::-1], marked.matrix))
    message = r"words\[0\]: got '7 2a', expected one that is no header"
    with pytest.warns(UserWarning, match="spaces inside"):
        rejected(message, write_vectors, tmp_path / "v.glove", (("7 2a", "b"), marked.matrix))


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.txt.gz"])
def test_text_that_is_cut_in_its_first_row(file, name):
    text = b"300 7\nthe 0.5 0.1"
    for length in range(6, len(text) + 1):
        cut = text[:length]
        path = file(gzip.compress(cut) if name.endswith("gz") else cut, name)
        rejected(rf"{name}: line \d.*: got", read_vectors, path)
    path = file(b"5 3\n6 4\n")
    assert read_vectors(path, format="glove").words == ("5", "6")


def test_words_with_spaces_are_written_with_a_warning(tmp_path):
    given = Vectors(("new york", "b", "c d"), SMALL.matrix)
    for name in ("v.txt", "v.glove"):
        message = f"{name}: 2 words have spaces inside, such as 'new york'.* do not; .npz"
        with pytest.warns(UserWarning, match=message) as warned:
            write_vectors(tmp_path / name, given)
        assert warned[0].filename == __file__
        same(read_vectors(tmp_path / name), given)
    for name in ("v.npz", "v.npy", "v.safetensors"):
        write_vectors(tmp_path / name, given)
    with pytest.warns(UserWarning, match="spaces inside") as warned:
        merge_files([tmp_path / "v.npz"], tmp_path / "merged.txt")
    assert warned[0].filename == __file__
    for word in ("a 1 2b", "a 1 2 3"):
        wrong = Vectors((word, "b", "c"), SMALL.matrix)
        rejected(r"words\[0\]: got", write_vectors, tmp_path / "v.txt", wrong)
    with pytest.warns(UserWarning, match="spaces inside"):
        write_vectors(tmp_path / "v.txt", (("a 1st b", "b"), np.eye(2)))


@pytest.mark.parametrize("name", ["v.npy", "v.safetensors"])
def test_a_matrix_and_a_list_that_do_not_go_together(tmp_path, name):
    """As if a writer had been killed between the two."""
    first, second, listed = tmp_path / name, tmp_path / f"other.{name}", tmp_path / "v.words.txt"
    other = Vectors(SMALL.words[::-1], 2 * SMALL.matrix)
    write_vectors(second, other, words=tmp_path / "list")
    write_vectors(first, SMALL, words=listed)
    same(read_vectors(first), SMALL)
    old, new = listed.read_bytes(), (tmp_path / "list").read_bytes()
    message = rf"v\.words\.txt: got other words, expected those that .*{name} was written with"
    for matrix, words in ((second.read_bytes(), old), (first.read_bytes(), new)):
        first.write_bytes(matrix)
        listed.write_bytes(words)
        rejected(message, read_vectors, first)
        rejected(message, read_vectors, first, words=listed)
        rejected(message, read_vectors, first, limit=1)
        rejected(message, merge_files, [first], tmp_path / "out.npz")
        assert read_vectors(first, words=["x", "y", "z"]).words == ("x", "y", "z")
    first.write_bytes(second.read_bytes())
    same(read_vectors(first), other)


def test_others_read_a_matrix_with_a_digest(tmp_path):
    write_vectors(tmp_path / "v.npy", SMALL, words=tmp_path / "list.txt.gz")
    for mode in (None, "r"):
        found = np.load(tmp_path / "v.npy", mmap_mode=mode)
        np.testing.assert_array_equal(found, SMALL.matrix, strict=True)
    assert gzip.decompress((tmp_path / "list.txt.gz").read_bytes()).decode().split() == [
        *SMALL.words
    ]
    same(read_vectors(tmp_path / "v.npy", words=tmp_path / "list.txt.gz"), SMALL)


def test_numbers_of_the_other_byte_order(tmp_path):
    other = SMALL.matrix.astype(SMALL.matrix.dtype.newbyteorder(">"))
    assert as_vectors((SMALL.words, other)).matrix.dtype.isnative
    np.save(tmp_path / "v.npy", other)
    (tmp_path / "v.words.txt").write_text("\n".join(SMALL.words))
    np.savez(
        tmp_path / "v.npz", words=np.array(SMALL.words, ">U3"), vectors=np.asfortranarray(other)
    )
    for name in ("v.npy", "v.npz"):
        same(read_vectors(tmp_path / name), SMALL)
        merge_files([tmp_path / name] * 2, tmp_path / "out.npz", method="UW-unit")
        lengths = np.linalg.norm(read_vectors(tmp_path / "out.npz").matrix, axis=1)
        np.testing.assert_allclose(lengths, math.sqrt(2), rtol=1e-5)


BOMBS = {
    "long words": lambda path: npz(
        path / "v.npz", zipfile.ZIP_DEFLATED, words=np.full(120, "x" * 10**6), vectors=np.eye(120)
    ),
    "by columns": lambda path: npz(
        path / "v.npz",
        zipfile.ZIP_DEFLATED,
        words=np.array(["a", "b"]),
        vectors=np.zeros((2, 10**7), order="F"),
    ),
    "text": lambda path: (
        path / "v.txt.gz",
        gzip.compress((b"a 0" + b" 0" * 200 + b"\n") * 250_000, 1),
    ),
    "a line": lambda path: (path / "v.txt.bz2", bz2.compress(b" " * 10**8 + b"x")),
    "nothing": lambda path: (path / "v.bin.bz2", bz2.compress(b"1000000000 1\n" + bytes(10**8))),
}
READ = """
import resource, sys
from jaxmeta import read_vectors
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_vectors(sys.argv[1])
except ValueError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_what_unpacks_to_fill_the_memory_is_refused(tmp_path, name):
    path = BOMBS[name](tmp_path)
    if isinstance(path, tuple):
        path, content = path
        path.write_bytes(content)
    size = path.stat().st_size
    read = [sys.executable, "-c", READ, path]
    found = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    *said, most = found.splitlines()
    assert str(path) in said[0]
    assert int(most) * 1024 < 10 * size + 200e6


class Shrinks:
    """Cuts a file when merging has read it through."""

    def __init__(self, path):
        self.path, self.done = path, False

    def __call__(self, stage, _):
        if stage != "read" and not self.done:  # rows are taken again
            os.truncate(self.path, 2000)
            self.done = True


@pytest.mark.parametrize("name", ["v.npy", "v.safetensors", "v.bin", "v.npz"])
def test_a_file_that_shrinks_while_it_is_merged(tmp_path, rng, monkeypatch, name):
    monkeypatch.setattr(merge, "BLOCK", 1 << 12)
    words = [f"w{i}" for i in rng.permutation(2000)]
    path = tmp_path / name
    write_vectors(path, (words, rng.normal(size=(2000, 8)).astype(np.float32)))
    settings = {"vocabulary": sorted(words), "progress": Shrinks(path)}
    message = rf"{name}: got \d+ bytes at offset \d+, expected \d+, as there were before"
    rejected(message, merge_files, [path], tmp_path / "out.txt", **settings)


def test_columns_that_shrink(tmp_path):
    np.save(tmp_path / "v.npy", np.asfortranarray(np.ones((2000, 60))))
    path, words = tmp_path / "v.npy", [f"w{i}" for i in range(2000)]
    shrinks = Shrinks(path)
    rejected(
        "v.npy: got .* bytes, expected .* more", read_vectors, path, words=words, progress=shrinks
    )
    assert shrinks.done
