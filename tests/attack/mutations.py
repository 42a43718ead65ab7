"""Ways in which bytes go wrong: by chance, and by somebody who knows the format."""

import random
import re

__all__ = ["mutated"]

NUMBERS = (0, 1, 2, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 10**12, 2**63, 10**30)
TEXTS = (
    b"-1", b"1e999", b"nan", b"[", b"]", b"{", b"}", b'"', b"null", b"true", b"(", b",", b" ",
    b"  ", b"\n", b"\r", b"\r\n", b"\t", b"\0", b"\xef\xbb\xbf", b"\xff", b"O", b"<U1", b">f4",
    b"-", b".",
)  # fmt: skip


def _span(rng: random.Random, data: bytes) -> tuple[int, int]:
    start = rng.randrange(len(data))
    return start, min(len(data), start + rng.choice((1, 1, 2, 4, 16, 100, 1000)))


def flip(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def at_the_start(rng: random.Random, data: bytes) -> bytes:
    """Headers are short, and most of what can go wrong is there."""
    head = data[: rng.choice((16, 64, 256))]
    return rng.choice((flip, overwrite, delete, insert, number))(rng, head) + data[len(head) :]


def at_the_end(rng: random.Random, data: bytes) -> bytes:
    tail = data[-rng.choice((16, 64, 256)) :]
    return data[: -len(tail)] + rng.choice((flip, overwrite, delete, insert, number))(rng, tail)


def overwrite(rng: random.Random, data: bytes) -> bytes:
    start, end = _span(rng, data)
    content = rng.choice((bytes(end - start), b"\xff" * (end - start), rng.randbytes(end - start)))
    return data[:start] + content + data[end:]


def integer(rng: random.Random, data: bytes) -> bytes:
    """A length or an offset, as binary formats have them."""
    start, size = rng.randrange(len(data)), rng.choice((2, 4, 8))
    value = rng.choice(NUMBERS) % 256**size
    return data[:start] + value.to_bytes(size, "little") + data[start + size :]


def delete(rng: random.Random, data: bytes) -> bytes:
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def repeat(rng: random.Random, data: bytes) -> bytes:
    start, end = _span(rng, data)
    return data[:end] + data[start:end] * rng.choice((1, 1, 100)) + data[end:]


def insert(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice((*TEXTS, rng.randbytes(5))) + data[start:]


def run(rng: random.Random, data: bytes) -> bytes:
    """A long run of one text."""
    start = rng.randrange(len(data) + 1)
    return data[:start] + rng.choice((*TEXTS, b"9")) * rng.choice((100, 5_000)) + data[start:]


def cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data))]


def move(rng: random.Random, data: bytes) -> bytes:
    start, end = _span(rng, data)
    rest = data[:start] + data[end:]
    place = rng.randrange(len(rest) + 1)
    return rest[:place] + data[start:end] + rest[place:]


def number(rng: random.Random, data: bytes) -> bytes:
    """Another number where one stands in text."""
    found = list(re.finditer(rb"\d+", data[:4096])) or list(
        re.finditer(rb".", data[:64], re.DOTALL)
    )
    if not found:
        return data + b"1"
    match = rng.choice(found)
    value = rng.choice((*(str(x).encode() for x in NUMBERS), b"9" * 5000, b"-1", b"x", b""))
    return data[: match.start()] + value + data[match.end() :]


WAYS = (
    flip, flip, at_the_start, at_the_start, at_the_end, overwrite, integer, delete, delete, repeat,
    insert, insert, run, cut, move, number,
)  # fmt: skip


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Make another file of one."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(WAYS)(rng, data) or b"\0"
    return data
