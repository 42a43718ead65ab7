"""Files are written whole or not at all, opened packed or not, and kept as a cache."""

import bz2
import dataclasses
import errno
import gzip
import hashlib
import importlib
import io
import json
import os
import re
import secrets
import stat
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta._checks import fail

__all__ = [
    "Cache",
    "Unpacked",
    "digest",
    "intact",
    "is_packed",
    "is_part",
    "on_disk",
    "opened",
    "write_whole",
]

# Elsewhere what killed writers leave stays.
fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
SUM = "sha256"  # the name of the digest of a cache entry
PART = re.compile(r".+\.[0-9a-f]{8}\.part(\.[^.]*)?", re.DOTALL)
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


@contextmanager
def write_whole(path: str | Path) -> Iterator[Path]:
    """Give a file to write to, which takes the place of `path` once nothing has gone wrong.

    Folders above it are made. What is written is on the disk before it takes that place; a link
    leads to the file that is replaced, whose mode and owner are kept; a device or a pipe is
    refused. If the body raises, its file is removed and `path` is left alone. What writers that
    were killed have left in the folder is removed.
    """
    path = Path(path)
    target = Path(os.path.realpath(path))
    part = target.with_name(f"{target.stem}.{secrets.token_hex(4)}.part{path.suffix}")
    try:
        before = _replaced(path, target)
        part.parent.mkdir(parents=True, exist_ok=True)
        _clear(part.parent)
        with _held(part, 0o666 if before is None else 0o600):
            os.utime(part, (0, 0))
            yield part
            if part.stat().st_mtime == 0:
                do = "write to the name that is given, as it is"
                fail(str(path), "nothing", "something to be written", do, OSError)
            on_disk(part)
            if before is not None:
                with suppress(OSError, AttributeError):  # only root may give files away
                    os.chown(part, before.st_uid, before.st_gid)
                part.chmod(stat.S_IMODE(before.st_mode))
            part.replace(target)
    except OSError as error:
        # Writing names no file, opening and renaming the part; errors of other files are not ours.
        own = (part, target, *part.parents)
        ours = error.filename is None or Path(str(error.filename)) in own
        if error.errno is None or not ours:
            raise
        message = f"{path}: could not be written ({error.strerror}), and is as it was before; "
        raise OSError(error.errno, message + "free some space, or choose another folder") from error
    finally:
        with suppress(OSError):  # it must not hide the first error
            part.unlink()


def on_disk(path: Path) -> None:
    """Wait until what is written to a file is on the disk."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _replaced(path: Path, target: Path) -> os.stat_result | None:
    """What is known of the file that is replaced, if there is one; nothing but a file is."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        got = KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        fail(str(path), got, "a file or a new name", "write to a file, and copy it there", OSError)
    return found


def _held(part: Path, mode: int) -> Any:
    """Open a new file, with a lock by which other processes know that its writer lives."""
    held = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode), "rb+")
    if fcntl is None:
        held.close()  # open files cannot be renamed there
        return held
    with suppress(OSError):  # not all file systems have locks
        fcntl.flock(held, fcntl.LOCK_EX)
    if os.fstat(held.fileno()).st_nlink:
        return held
    held.close()  # it was taken for stale before it was locked
    return _held(part, mode)


def _clear(folder: Path) -> None:
    """Remove what writers that are no more have left: nobody holds a lock on it."""
    if fcntl is None:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if PART.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), open(entry.path, "rb+") as left:
                    fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)


def is_part(path: Path) -> bool:
    """Whether a file has a name that `write_whole` gives to what is not whole yet."""
    return PART.fullmatch(path.name) is not None


def digest(path: str | Path) -> str:
    """Compute the SHA-256 of what a file holds, read in blocks."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def intact(
    path: Path,
    got: str = "data that ends early or does not unpack",
    expected: str = "a whole file",
    do: str = "it is truncated or damaged: fetch it again",
) -> Iterator[None]:
    """Say so if a file is not what its format is, whatever the reader of the format raises.

    Faults of the disk have a number and pass, and those of the machine. Checks of ours may not
    stand within: they would be taken for those of the format.
    """
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        # A place before the start of a file is what a wrong offset asks for.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        why = " ".join(f"{type(error).__name__}: {error}".split())
        fail(str(path), f"{got} ({why[:200]})", expected, do)


class Unpacked:
    """The content of a packed file, `most` bytes at most."""

    def __init__(self, path: Path, file: Any, most: int = sys.maxsize) -> None:
        self._path, self._file, self._most, self._given = path, file, most, 0

    def read(self, size: int = -1) -> bytes:
        """Read some bytes, or all that are left."""
        with intact(self._path):
            found = self._file.read(size)
        self._given += len(found)
        if self._given > self._most:
            do = "if it is meant to, unpack it first, and read that"
            got = f"more than {self._most} bytes when it is unpacked"
            fail(str(self._path), got, "at most ten times its size, and 64 MB", do)
        return found

    def tell(self) -> int:
        """Say how many bytes are read."""
        return self._given


def opened(
    path: Path, raw: io.BufferedIOBase, most: int = sys.maxsize
) -> Iterator[tuple[str, Any]]:
    """Open the texts in a file, packed or not: give the name and the content of each."""
    kind = path.suffix.lower()
    if not is_packed(path):
        yield path.name, raw
    elif kind == ".zip":
        with intact(path):
            archive = zipfile.ZipFile(raw)
            members = [member for member in archive.infolist() if not member.is_dir()]
        for member in members:
            name = f"{path.name}/{member.filename}"
            with intact(path.parent / name):
                file = archive.open(member)
            yield name, Unpacked(path.parent / name, file, most)
    elif kind == ".gz":
        yield path.name, Unpacked(path, gzip.GzipFile(fileobj=raw), most)
    else:
        yield path.name, Unpacked(path, bz2.BZ2File(raw), most)


def is_packed(path: Path) -> bool:
    """Whether `opened` unpacks a file."""
    return path.suffix.lower() in (".zip", ".gz", ".bz2")


@dataclasses.dataclass(frozen=True)
class Cache:
    """A folder (None: nothing is kept) of arrays, each under the settings that it depends on.

    With the arrays stands a digest of them and of the settings: what has changed is made again.
    """

    folder: Path | None

    def arrays(
        self, stage: str, key: dict[str, Any], make: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return what `make` does, from disk if it was made before and is whole."""
        arrays = self.find(stage, key)
        if arrays is None:
            arrays = make()
            if self.folder is not None:
                place, settings = _place(self.folder, stage, key)
                given = {**arrays, SUM: _sum(settings, arrays)}
                with write_whole(place) as part:
                    np.savez(part, **given)  # type: ignore[arg-type]
        return arrays

    def find(self, stage: str, key: dict[str, Any]) -> dict[str, np.ndarray] | None:
        """Return the arrays kept under these settings, or None if none are whole."""
        if self.folder is None:
            return None
        place, settings = _place(self.folder, stage, key)
        try:
            with place.open("rb") as file, intact(place), np.load(file) as stored:
                arrays = dict(stored)
                if arrays.pop(SUM).tobytes() != _sum(settings, arrays).tobytes():
                    raise ValueError("another digest")
        except (FileNotFoundError, ValueError):
            return None
        return arrays


def _place(folder: Path, stage: str, key: dict[str, Any]) -> tuple[Path, str]:
    """Where an entry is, and what it depends on in one text."""
    settings = json.dumps(key, sort_keys=True)
    short = hashlib.sha256(settings.encode()).hexdigest()[:20]
    return folder / f"{stage}-{short}.npz", f"{stage} {settings}"


def _sum(settings: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Compute a digest of names, dtypes, shapes and numbers, and of what they depend on."""
    found = hashlib.sha256(settings.encode())
    for name, array in arrays.items():
        array = np.asarray(array)
        found.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        found.update(np.ascontiguousarray(array).view(np.uint8).data)
    return np.frombuffer(found.digest(), np.uint8)
