"""What a file holds, read in the plainest way; None if it holds nothing that may be read.

These know nothing of the library. They are as strict as its formats are described: what they refuse
must be refused, and what both read must be the same.
"""

import collections
import io
import json
import math
import re
import warnings
import zipfile

import numpy as np

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
MARK = b"\xef\xbb\xbf"
KINDS = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


def kept(words, rows):
    """Words once each, with finite rows."""
    found = dict(zip(reversed(words), reversed(range(len(words))), strict=True))
    order = sorted(found.values())
    matrix = np.asarray(rows)[order]
    if "" in found or not matrix.size or not np.isfinite(matrix).all():
        return None
    return tuple(words[i] for i in order), matrix


def text(data, header=None):
    """A word and numbers on each line. Lines are told apart as others do it, too."""
    lines = data.removeprefix(MARK).decode("utf-8", "surrogateescape").split("\n")
    if lines[-1] == "":
        lines.pop()
    lines = [line.removesuffix("\r").rstrip(" ") for line in lines]
    counts, rows = None, None
    if lines and (match := re.fullmatch(r"(\d{1,18}) (\d{1,18})", lines[0], re.ASCII)) and header:
        rows, counts = map(int, match.groups())
        lines = lines[1:]
    if rows not in (None, len(lines)) or not lines:
        return None
    if counts is None:
        trailing = []
        for line in lines[:20]:
            fields = line.split(" ")[1:]
            n = next(
                (i for i, x in enumerate(fields[::-1]) if not NUMBER.fullmatch(x)), len(fields)
            )
            trailing.append(n)
        counts = collections.Counter(trailing).most_common(1)[0][0]
    words, matrix = [], []
    for line in lines:
        word, *numbers = line.rsplit(" ", counts)
        if len(numbers) != counts or not word:
            return None
        # A row of numbers inside a word is a row that was lost.
        if sum(map(bool, map(NUMBER.match, word.split(" ")[1:]))) >= max(counts, 1):
            return None
        if re.search(r"[\r\n]", line) or any(0xDC80 <= ord(c) <= 0xDCFF for c in word):
            return None
        words.append(word)
        with np.errstate(over="ignore"):
            # Rows of words that come again are not looked at.
            matrix.append([np.float32(x if NUMBER.fullmatch(x) else "nan") for x in numbers])
    return kept(words, np.array(matrix, np.float32)) if counts else None


def binary(data):
    match = re.match(rb"(?:\xef\xbb\xbf)?(\d{1,18}) (\d{1,18})[ \r]*\n", data)
    if not match:
        return None
    rows, columns, at = int(match[1]), int(match[2]), match.end()
    words, matrix = [], []
    for _ in range(rows):
        space = data.find(b" ", at)
        stop = space + 1 + 4 * columns
        if space < 0 or stop > len(data):
            return None
        try:
            words.append(data[at:space].lstrip(b"\n").decode())
        except UnicodeDecodeError:
            return None
        matrix.append(np.frombuffer(data[space + 1 : stop], "<f4"))
        at = stop
    return kept(words, np.array(matrix)) if matrix and not data[at:].strip(b"\n") else None


def array(data):
    """A .npy file that NumPy reads, and that ends where its numbers do."""
    file = io.BytesIO(data)
    try:
        with warnings.catch_warnings(action="ignore"):
            found = np.load(file, allow_pickle=False)
        end = file.tell()
    except Exception:  # whatever NumPy raises
        return None
    return found if isinstance(found, np.ndarray) and data[end:] == b"" else None


def matrix(data):
    found = array(data)
    if found is None or found.ndim != 2 or found.dtype.newbyteorder("=") not in ("f2", "f4", "f8"):
        return None
    return found


def listed(data):
    lines = data.removeprefix(MARK).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    try:
        return [line.removesuffix(b"\r").decode() for line in lines]
    except UnicodeDecodeError:
        return None


def npz(data):
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            words, numbers = (archive.read(f"{name}.npy") for name in ("words", "vectors"))
    except Exception:  # whatever zipfile raises
        return None
    words, numbers = array(words), matrix(numbers)
    if words is None or numbers is None or words.dtype.kind not in "SU" or words.ndim != 1:
        return None
    try:
        words = [x.decode() if isinstance(x, bytes) else x for x in words.tolist()]
    except ValueError:
        return None
    return kept(words, numbers) if len(words) == len(numbers) else None


def tensors(data, words=None):
    """A safetensors file with one matrix, whose words are in the metadata or given."""
    try:
        length = int.from_bytes(data[:8], "little")
        head = json.loads(data[8 : 8 + length].decode())
        metadata = head.pop("__metadata__", None) or {}
        words = json.loads(metadata["words"]) if "words" in metadata else words
        (tensor,) = (x for x in head.values() if len(x["shape"]) == 2)
        ends = [8 + length + x for each in head.values() for x in each["data_offsets"]]
        start, stop = (8 + length + x for x in tensor["data_offsets"])
        shape, content = tensor["shape"], data[start:stop]
        if tensor["dtype"] == "BF16":
            found = (np.frombuffer(content, "<u2").astype("<u4") << 16).view("<f4")
        else:
            found = np.frombuffer(content, KINDS[tensor["dtype"]])
        if math.prod(shape) != found.size or max(ends) != len(data):
            return None
        if not all(type(n) is int and n > 0 for n in shape):
            return None
        found = found.reshape(shape)
        if not isinstance(words, list) or not all(isinstance(x, str) for x in words):
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return kept(words, found) if len(words) == len(found) else None
