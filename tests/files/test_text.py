"""Text is read as others write it, every number is the nearest, and damage is named."""

import decimal
import fractions
import gzip
import pathlib
import tempfile

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from vector_files import FLOATS, rejected, same

from jaxmeta.files import _blocks
from jaxmeta.files.vectors import Vectors, read_vectors, write_vectors

pytestmark = pytest.mark.one_leg


plain = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9)

pieces = st.text("0123456789", min_size=1, max_size=18)

some_numbers = st.one_of(
    plain.map(lambda x: f"{x:f}"),
    st.tuples(st.sampled_from(["", "-", "+"]), pieces, st.just("."), pieces).map("".join),
    st.tuples(st.sampled_from(["", "-"]), st.just("."), pieces).map("".join),
    st.tuples(pieces, st.just(".")).map("".join),
    st.tuples(pieces, st.sampled_from(["e-7", "E+3", "e5"])).map("".join),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["0", "-0", "0.0", "-0.0", "9007199254740993", "1" + "0" * 15, "." + "9" * 15]),
)


@hypothesis.settings(max_examples=300)
@hypothesis.given(numbers=st.lists(some_numbers, min_size=1, max_size=6))
def test_numbers_are_rounded_as_python_does(numbers):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "v.txt"
        path.write_text(f"1 {len(numbers)}\nw {' '.join(numbers)}\n")
        found = read_vectors(path, dtype=np.float64).matrix[0]
    assert found.tobytes() == np.array(list(map(float, numbers))).tobytes()


def nearest(text, dtype):
    """The number of a dtype nearest to a decimal, in exact arithmetic; ties to even."""
    exact, start = fractions.Fraction(text), dtype(float(text))
    near = [np.nextafter(start, dtype(-np.inf)), start, np.nextafter(start, dtype(np.inf))]
    integer = f"i{np.dtype(dtype).itemsize}"
    return min(
        near, key=lambda x: (abs(fractions.Fraction(float(x)) - exact), int(x.view(integer)) & 1)
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_numbers_are_rounded_once(file, dtype, rng):
    # Next to the middle of two neighbours the nearest float64 is that middle.
    low = rng.normal(size=50).astype(dtype)
    with decimal.localcontext(prec=80):
        pairs = [(float(x), float(np.nextafter(x, dtype(9)))) for x in low]
        middle = [(decimal.Decimal(x) + decimal.Decimal(y)) / 2 for x, y in pairs]
        tiny = decimal.Decimal("1e-40")
        texts = [f"{m + side:f}" for m in middle for side in (-tiny, 0, tiny)]
    texts += ["7.038531e-26", "7.0385307e-26"]
    path = file(f"1 {len(texts)}\nw {' '.join(texts)}\n")
    found = read_vectors(path, dtype=dtype).matrix[0]
    expected = np.array([nearest(text, dtype) for text in texts])
    assert found.tobytes() == expected.tobytes()
    twice = np.array([dtype(float(text)) for text in texts])
    assert (found != twice).any()


def test_a_float32_whose_shortest_text_is_next_to_a_middle(tmp_path):
    # 7.038531e-26 is the shortest; rounded to float64 first, it would become the number below.
    given = Vectors(("w",), np.array([[7.0385307e-26]], np.float32))
    write_vectors(tmp_path / "v.txt", given)
    same(read_vectors(tmp_path / "v.txt"), given)


def test_many_numbers(tmp_path, rng):
    bits = rng.integers(0, 2**32, 40_000, dtype=np.uint32).view(np.float32)
    numbers = np.concatenate([bits[np.isfinite(bits)][:30_000], rng.normal(size=30_000)])
    given = Vectors(tuple(map(str, range(600))), numbers.astype(np.float32).reshape(600, 100))
    write_vectors(tmp_path / "v.txt", given)
    same(read_vectors(tmp_path / "v.txt"), given)


@pytest.mark.parametrize("dtype", FLOATS[:2])
def test_text_has_the_fewest_digits(tmp_path, dtype, rng):
    bits = rng.integers(0, 2 ** (8 * np.dtype(dtype).itemsize), 5000, dtype=np.uint64)
    numbers = bits.astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    numbers = np.concatenate([numbers[np.isfinite(numbers)], rng.normal(size=5000).astype(dtype)])
    write_vectors(path := tmp_path / "v.glove", (["w"], numbers[None]))
    text = path.read_text().split()[1:]
    for written, number in zip(text, numbers, strict=True):
        digits = len(decimal.Decimal(written).normalize().as_tuple().digits)
        least = decimal.Decimal(np.format_float_scientific(number)).normalize().as_tuple().digits
        assert digits == len(least), (written, number)


ROWS = ("a", "b"), [[1, 2.5], [-3, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "a 1 2.5\nb -3 0\n",
        "a 1 2.5\nb -3 0",
        "2 2\na 1 2.5\nb -3 0\n",
        "2 2\na 1.0 2.50 \nb -3.0 0.0 \n",
        "2 2\r\na 1 2.5\r\nb -3 0\r\n",
        "2 2 \na 1e0 25e-1  \nb -3. +0\n",
        "\N{ZERO WIDTH NO-BREAK SPACE}2 2\na 1 2.5\nb -3 0\n",
    ],
    ids=["glove", "no end", "header", "fasttext", "windows", "odd", "mark"],
)
@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_text_of_others(file, monkeypatch, text, block):
    monkeypatch.setattr(_blocks, "BLOCK", block)
    same(read_vectors(file(text)), Vectors(ROWS[0], np.array(ROWS[1], np.float32)))


def test_words_with_spaces(file):
    text = ". . . 1 2\n.. 3 4\nat name@domain.com 5 6\n2012 7 8\n\N{NO-BREAK SPACE} 9 10\n- 1 1\n"
    found = read_vectors(file(text))
    assert found.words == (". . .", "..", "at name@domain.com", "2012", "\N{NO-BREAK SPACE}", "-")
    assert found.matrix[:, 0].tolist() == [1, 3, 5, 7, 9, 1]


def test_headers(file):
    assert read_vectors(file("5 3\n6 4\n7 5\n")).words == ("5", "6", "7")
    assert read_vectors(file("2 1\n6 4\n7 4\n")).words == ("6", "7")
    assert read_vectors(file("2 1\n6 4\n7 4\n"), format="glove").words == ("2", "6", "7")
    rejected("line 1: got .*a header", read_vectors, file("a 1 2\n"), format="word2vec")
    rejected("line 1: got 0 3, expected rows", read_vectors, file("0 3\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 3\nc 4 5\n", r"line 2 \(offset 6\): got 1 numbers, expected 2; remove or"),
        ("a 1 2\nb 3 4 5\n", r"line 2 \(offset 6\): got more than 2 numbers"),
        ("a 1 2\n\nc 4 5\n", r"line 2 \(offset 6\): got 0 numbers"),
        ("2 3\na 1 2\nb 3 4\n", r"line 2 \(offset 4\): got 2 numbers, expected 3"),
        ("2 2\na 1 2 3\nb 3 4 5\n", r"line 2 \(offset 4\): got more than 2 numbers"),
        ("3 2\na 1 2\nb 3 4\n", r"line 4: got 2 rows, expected 3, as line 1 says; it is cut"),
        ("1 2\na 1 2\nb 3 4\n", r"line 4: got 2 rows, expected 1"),
        ("3 2\n", r"line 2: got 0 rows, expected 3"),
        ("a 1 2\nb nan 3\n", r"line 2 \(offset 6\): got nan in column 0, expected finite"),
        ("a 1 2\nb 3 -inf\n", r"line 2 \(offset 6\): got -inf in column 1"),
        ("a 1 2\nb 3 1e999\n", r"line 2 \(offset 6\): got inf in column 1"),
        ("a 1 2\nb 3 1e39\n", r"line 2 .*got 1e\+39 in column 1, .*of float32; pass dtype=np.fl"),
        ("a 1 2\nb 3 4,5\n", r"line 2 \(offset 6\): got '4,5', expected a finite number"),
        ("a 1 2\nb 1.2.3 4\n", r"line 2 .*got '1\.2\.3'"),
        ("a 1 2\nb 1-2 4\n", r"line 2 .*got '1-2'"),
        ("a 1 2\nb 1_0 4\n", r"line 2 .*got '1_0'"),
        ("a 1 2\nb - 4\n", r"line 2 .*got '-'"),
        ("a 1 2\nb . 4\n", r"line 2 .*got '\.'"),
        ("2 2\na 1 2\nb 3  4\n", r"line 3 \(offset 10\): got more than 2 numbers or spaces"),
        ("a 1 2\nb  4\n", r"line 2 .*got '', expected a finite number"),
        ("a 1 2\n 3 4\n", r"line 2 \(offset 6\): got an empty word"),
        ("2 2\na\t1 2 3\nb\t4 5 6\n", r"line 2 .*got more than 2 numbers"),
        ("a\t1 2 3\nb\t4 5 6\n", r"line 1 .*got more than 2 numbers"),
        ("a\t1\t2\n", r"line 1: got .*expected a word and numbers"),
        ("some plain text\n", r"line 1: got .*expected a word and numbers"),
        ("", "got an empty file, expected vectors"),
        ("\n", "got an empty file"),
    ],
)
@pytest.mark.parametrize("block", [3, 1 << 18])
def test_wrong_text(file, monkeypatch, text, message, block):
    monkeypatch.setattr(_blocks, "BLOCK", block)
    path = file(text)
    rejected(rf"v\.txt:? ?.*{message}", read_vectors, path)
    path = file(gzip.compress(text.encode()), "v.txt.gz")
    rejected(rf"v\.txt\.gz:? ?.*{message}", read_vectors, path)


def test_offsets_are_those_of_the_file(file):
    path = file("2 2 \r\na 1 2 \r\nb 3 x \r\n")
    rejected(r"line 3 \(offset 14\): got 'x'", read_vectors, path)


def test_glove(data):
    path = data / "glove-100d-56k.txt.gz"
    found = read_vectors(path)
    assert found.matrix.shape == (55_155, 100)
    assert found.words[0] == "the"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            if i % 97 == 0:
                word, *numbers = line.rstrip("\n").split(" ")
                assert word == found.words[i]
                np.testing.assert_array_equal(found.matrix[i], np.array(numbers, np.float32))
