"""Decimal numbers in text become the nearest float64, many at a time, and the other way round.

Up to 16 characters of a number are two integers of 64 bits, from which its digits are taken all at
once. What is not as plain as that is left to the caller.
"""

import numpy as np

__all__ = ["halfway", "parse", "shortest"]

_ALL = (1 << 64) - 1
# By the number of characters: which bytes of the last 8, and of the 8 before, belong to a number.
_LAST = np.array([_ALL << 64 - 8 * min(n, 8) & _ALL for n in range(17)], np.uint64)
_FIRST = np.array([_ALL << 64 - 8 * max(n - 8, 0) & _ALL for n in range(17)], np.uint64)
# By the place of the point from the end, 0 if there is none.
_POWER = np.array([10**i for i in range(17)], np.uint64)
_EXCESS = np.array([0] + [9 * 10**i for i in range(16)], np.uint64)
_SCALE = np.array([1.0] + [10.0**i for i in range(16)])


def parse(text: bytes, starts: np.ndarray, stops: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Parse the numbers between places of a text; say which are sure to be the nearest float64.

    A number of up to 15 digits and a point is an integer over a power of ten. Both are exact, so
    their ratio is rounded once.
    """
    sixteen = np.ndarray((len(text) - 15,), "V16", text, strides=(1,))[stops - 16].view("<u8")
    negative = np.frombuffer(text, np.uint8)[starts] == ord("-")
    length = stops - starts - negative
    last, last_point, last_wrong = _digits(sixteen[:, 1::2], _LAST.take(length, mode="clip"))
    first, first_point, first_wrong = _digits(sixteen[:, ::2], _FIRST.take(length, mode="clip"))
    point = last_point + np.where(first_point > 0, first_point + np.uint8(8), np.uint8(0))
    sure = ((last_wrong | first_wrong) == 0) & (length <= 16) & (length > (point > 0))
    sure &= (last_point == 0) | (first_point == 0)
    # The point was taken for a digit 0, so what stands before it is ten times too large.
    digits = last + first * np.uint64(10**8)
    digits -= digits // _POWER.take(point, mode="clip") * _EXCESS.take(point, mode="clip")
    sure &= digits <= 2**53
    numbers = digits.astype(np.float64) / _SCALE.take(point, mode="clip")
    np.negative(numbers, out=numbers, where=negative)
    return numbers, sure


def _digits(eight: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the integer that 8 characters are, where a point is from their end, what is wrong."""
    u = np.uint64
    x = (eight ^ u(0x3030303030303030)) & mask  # digits are now 0 to 9, and a point is 0x1e
    points = x & u(0x1010101010101010)
    x ^= (points >> u(4)) * u(0x1E)
    wrong = ((x + u(0x7676767676767676)) | x) & u(0x8080808080808080)  # beyond 9
    wrong |= x & (points - (points >> u(4)))  # no point, but another sign of its kind
    wrong |= points & (points - u(1))  # two of them
    place = np.uint8(8) - (np.bitwise_count(points - u(1)) >> np.uint8(3))
    x = x * u(10 * 2**8 + 1) >> u(8)
    x = (x & u(0x00FF00FF00FF00FF)) * u(100 * 2**16 + 1) >> u(16)
    x = (x & u(0x0000FFFF0000FFFF)) * u(10_000 * 2**32 + 1) >> u(32)
    return x, place, wrong


def halfway(numbers: np.ndarray, dtype: np.dtype) -> list[list[int]]:
    """Find numbers midway between two neighbours in `dtype`: the text must tell which is nearer."""
    # Such numbers have at most 25 bits. Few have; of those the mirror image is looked at.
    rows, columns = np.nonzero(numbers.view(np.uint64) & np.uint64((1 << 28) - 1) == 0)
    some = numbers[rows, columns]
    with np.errstate(over="ignore", invalid="ignore"):
        near = some.astype(dtype).astype(np.float64)
        mirror = 2 * some - near
        halfway = (near != some) & (mirror.astype(dtype) == mirror) & np.isfinite(near)
    return np.stack([rows, columns], axis=1)[halfway].tolist()


def shortest(matrix: np.ndarray) -> np.ndarray:
    """Find the float64 nearest to the shortest decimal that tells a float16 or float32 apart."""
    limits = np.finfo(matrix.dtype)
    size = np.abs(matrix.astype(np.float64))
    # Here powers of ten are exact, and so rounded decimals are the nearest float64.
    plain = (size >= max(float(limits.tiny), 1e-13)) & (size < 1e13)
    shortest = np.zeros(matrix.shape)
    shortest[~plain] = [float(str(x)) for x in matrix[~plain]]
    exact = matrix[plain]
    left, found = np.arange(exact.size), np.zeros(exact.size)
    exponents = np.floor(np.log10(size[plain])).astype(int)
    for digits in range(limits.precision, limits.precision + 4):
        shift = digits - 1 - exponents[left]
        power = 10.0 ** np.abs(shift)
        x = exact[left].astype(np.float64)
        down = np.where(shift < 0, np.rint(x / power) * power, np.rint(x * power) / power)
        found[left] = down
        left = left[down.astype(matrix.dtype) != exact[left]]
    shortest[plain] = found
    return shortest
