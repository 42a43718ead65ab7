"""The file `tokenizer.json` of a transformer says which token each row of its input table is of."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxmeta._checks import fail
from jaxmeta._files import intact

__all__ = ["NAME", "tokens_of"]

NAME = "tokenizer.json"


def tokens_of(path: Path, rows: int, table: Path) -> list[str | None]:
    """Read the token of each of the rows of a table, None for those that have none."""
    do = "fetch it again, or pass words=, a list or a file with one word on each line"
    expected = "model.vocab and added_tokens, as tokenizers writes them"
    with intact(path, "no tokens", expected, do):
        content = json.loads(path.read_bytes())
        pairs = [*_vocabulary(content["model"]["vocab"]), *_added(content.get("added_tokens"))]
        if not all(isinstance(token, str) and type(row) is int for token, row in pairs):
            raise TypeError("tokens that are no text, or have no number")
        if min(row for _, row in pairs) < 0:
            raise ValueError("numbers below 0")
    last = max(row for _, row in pairs)
    if last >= rows:
        do = "pass tensor= or words=, those that go together"
        fail(str(path), f"tokens up to number {last}", f"{rows} rows, those of {table}", do)
    found: list[str | None] = [None] * rows
    for token, row in pairs:
        if found[row] not in (None, token):
            got = f"{found[row]!r} and {token!r} of number {row}"
            fail(str(path), got, "one token of each number", "fetch it again, or pass words=")
        found[row] = token or None
    return found


def _vocabulary(given: Any) -> Iterator[tuple[Any, Any]]:
    """Of WordPiece, BPE and WordLevel a dict, of Unigram a list of tokens and their scores."""
    if isinstance(given, dict):
        yield from given.items()
    else:
        yield from ((token, row) for row, (token, _) in enumerate(given))


def _added(given: Any) -> Iterator[tuple[Any, Any]]:
    yield from ((token["content"], token["id"]) for token in given or ())
