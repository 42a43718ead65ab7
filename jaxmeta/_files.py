"""Files are written whole or not at all, opened packed or not, and kept as a cache."""

import bz2
import dataclasses
import gzip
import hashlib
import io
import json
import secrets
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from jaxmeta._checks import fail

__all__ = ["DAMAGED_ARCHIVE", "Cache", "digest", "intact", "opened", "write_whole"]

DAMAGED_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError)
"""What reading a truncated, damaged or foreign .npz file may raise."""


@contextmanager
def write_whole(path: str | Path) -> Iterator[Path]:
    """Give a name to write to, which takes the place of `path` once nothing has gone wrong.

    Folders above it are made. If the body raises, its file is removed and `path` is left alone.
    """
    path = Path(path)
    part = path.with_name(f"{path.stem}.{secrets.token_hex(4)}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(path)
    except OSError as error:
        # Writing names no file, opening and renaming the part; errors of other files are not ours.
        ours = error.filename is None or Path(str(error.filename)) in (part, *path.parents)
        if error.errno is None or not ours:
            raise
        message = f"{path}: could not be written ({error.strerror}), and is as it was before; "
        raise OSError(error.errno, message + "free some space, or choose another folder") from error
    finally:
        with suppress(OSError):  # it must not hide the first error
            part.unlink()


def digest(path: str | Path) -> str:
    """Compute the SHA-256 of what a file holds, read in blocks."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def opened(path: Path, raw: io.BufferedIOBase) -> Iterator[tuple[str, io.BufferedIOBase]]:
    """Open the texts in a file, packed or not: give the name and the content of each."""
    kind = path.suffix.lower()
    if kind == ".zip":
        with intact(path):
            archive = zipfile.ZipFile(raw)
        for member in archive.infolist():
            if not member.is_dir():
                with intact(path):
                    file = archive.open(member)
                yield f"{path.name}/{member.filename}", file  # type: ignore[misc]
    elif kind == ".gz":
        yield path.name, gzip.GzipFile(fileobj=raw)
    elif kind == ".bz2":
        yield path.name, bz2.BZ2File(raw)
    else:
        yield path.name, raw


@contextmanager
def intact(path: Path) -> Iterator[None]:
    """Say so if compressed data is damaged. Faults of the disk have a number and pass."""
    try:
        yield
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        do = "it is truncated or damaged: fetch it again"
        fail(str(path), f"data that ends early or does not unpack ({error})", "a whole file", do)


@dataclasses.dataclass(frozen=True)
class Cache:
    """A folder (None: nothing is kept) of arrays, each under the settings that it depends on."""

    folder: Path | None

    def arrays(
        self, stage: str, key: dict[str, Any], make: Callable[[], dict[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return what `make` does, from disk if it was made before and can be read."""
        arrays = self.find(stage, key)
        if arrays is None:
            arrays = make()
            if self.folder is not None:
                with write_whole(_place(self.folder, stage, key)) as part:
                    np.savez(part, **arrays)  # type: ignore[arg-type]
        return arrays

    def find(self, stage: str, key: dict[str, Any]) -> dict[str, np.ndarray] | None:
        """Return the arrays kept under these settings, or None if none can be read."""
        if self.folder is None:
            return None
        try:
            with _place(self.folder, stage, key).open("rb") as file, np.load(file) as stored:
                return dict(stored)
        except (FileNotFoundError, *DAMAGED_ARCHIVE):
            return None


def _place(folder: Path, stage: str, key: dict[str, Any]) -> Path:
    settings = json.dumps(key, sort_keys=True).encode()
    return folder / f"{stage}-{hashlib.sha256(settings).hexdigest()[:20]}.npz"
