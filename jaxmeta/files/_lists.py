"""The words of a matrix are in a list, a file with one on each line, and the matrix knows which.

It carries the digest of the list that it was written with: two files take their names one after the
other, and a writer that is killed between them must not leave new vectors with old words.
"""

import hashlib
import os
import re
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from jaxmeta._checks import fail
from jaxmeta._files import on_disk
from jaxmeta.files import _blocks, _tokenizer

__all__ = ["NAME", "beside", "listed", "tie", "tied", "write"]

NAME = "words_sha256"  # of the digest, where a format has names


def beside(path: Path) -> Path:
    """Say where the list of a matrix is if nothing else is said."""
    return path.with_suffix(".words.txt")


def tie(digest: str) -> bytes:
    """Make the end of a .npy file, after all that NumPy reads; nothing without a digest."""
    return b"\nsha256 of the words %s\n" % digest.encode() if digest else b""


_tie = re.compile(tie("0" * 64).replace(b"0" * 64, b"([0-9a-f]{64})")).fullmatch


def tied(file: Any) -> str:
    """Find the digest at the end of a .npy file; "" if others wrote it."""
    length = len(tie("0" * 64))
    file.seek(max(file.seek(0, os.SEEK_END) - length, 0))
    found = _tie(file.read(length))
    file.seek(0)
    return found[1].decode() if found else ""


def listed(path: Path, words: Any, rows: int, digest: str) -> Generator[Any, None, None]:
    """Take words from a list, or from the file that is given or stands beside another.

    A file must have the digest, if there is any.
    """
    if words is not None and not isinstance(words, str | Path):
        yield from words
        return
    place = beside(path) if words is None else Path(words)
    if not place.is_file():
        do = f"pass words=, a list, a file with one word on each line, or a {_tokenizer.NAME}"
        fail(str(path), f"no word list {place}", "one beside it", do)
    if place.suffix.lower() == ".json":
        yield from _tokenizer.tokens_of(place, rows, path)
        return
    if digest not in ("", _digest(place)):
        do = "write both again, or pass words=, a list, if the words are right all the same"
        fail(str(place), "other words", f"those that {path} was written with", do)
    with _blocks.unpacked(place) as (file, _):
        mark = _blocks.MARK.encode()
        for block in _blocks.line_blocks(place, file):
            lines = block[:-1].removeprefix(mark).split(b"\n")
            yield from (line.removesuffix(b"\r") for line in lines)
            mark = b""


def _digest(place: Path) -> str:
    found = hashlib.sha256()
    with _blocks.unpacked(place) as (file, _):
        while some := file.read(_blocks.BLOCK):
            found.update(some)
    return found.hexdigest()


def write(path: Path, part: Path, words: Sequence[str]) -> str:
    """Write a list to what is to become a file, packed as the name of `path` says; digest it."""
    if words[0].startswith(_blocks.MARK):
        do = "put another word first, or drop it"
        fail("words[0]", repr(words[0]), "no mark of the byte order in a list", do)
    text = "".join(f"{word}\n" for word in words).encode()
    with _blocks.packed(path, part) as file:
        file.write(text)
    on_disk(part)  # so that there is little between the two files taking their names
    return hashlib.sha256(text).hexdigest()
