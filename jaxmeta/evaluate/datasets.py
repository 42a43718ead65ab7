r"""Data sets of the evaluation tasks are found, fetched and read here.

`load` reads a data set of `DATASETS` from a folder; `fetch` downloads those whose files have an
address of their own. Where files are below the folder stands in `datasets.toml`.
"""

import hashlib
import os
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from jaxmeta import _checks
from jaxmeta._files import digest
from jaxmeta.evaluate.readers import READERS, read_text

__all__ = [
    "DATASETS",
    "DataFile",
    "Dataset",
    "MissingData",
    "OtherEdition",
    "fetch",
    "load",
    "status",
]


class MissingData(FileNotFoundError):
    """A data set is not there; the message says where to get it."""


class OtherEdition(UserWarning):
    """A file is not the one in the registry: scores may differ from those on that one."""


class DataFile(NamedTuple):
    """A file of a data set has a path, a checksum and perhaps an address."""

    path: str
    sha256: str | None
    address: str | None = None
    """Where the file itself can be downloaded, if it can."""


class Dataset(NamedTuple):
    """A data set is what its files are, how they are read and how to get them."""

    files: tuple[DataFile, ...]
    licence: str
    read: Callable[..., Any]
    """From the name, the texts and `lower` to what `load` returns."""
    manual: str | None = None
    """What to download and where to put it, if files have no address."""
    encoding: str = "utf-8-sig"


def load(name: str, folder: str | Path | None = None, *, lower: bool = True) -> Any:
    """Read the data set `name` of `DATASETS` from `folder`, or from where JAXMETA_DATA says.

    With `lower`, tokens of sentences are put in lower case; words of pairs and analogies never are.
    All that can be scored is kept and in order, duplicate pairs and empty sentences too. The subset
    SMT of STS13 is left out: its sentences are not public.
    """
    _checks.one_of("name", name, DATASETS)
    data, folder = DATASETS[name], folder or os.environ.get("JAXMETA_DATA")
    if not folder:
        got, expected = "None and no JAXMETA_DATA in the environment", "the folder with "
        do = f"pass it or set the variable, and if it is not there: {_remedy(name)}"
        _checks.fail("folder", got, expected + data.files[0].path, do, MissingData)
    folder = Path(folder)
    _require(name, folder)
    texts = []
    for file in data.files:
        path = folder / file.path
        content = path.read_bytes()
        found = hashlib.sha256(content).hexdigest()
        if file.sha256 not in (None, found):
            warnings.warn(
                f"{path}: got SHA-256 {found}, expected {file.sha256}; it is read all the same, "
                f"and to have the other, remove it: {_remedy(name)}.",
                OtherEdition,
                stacklevel=2,
            )
        texts.append(read_text(path, content, data.encoding))
    return data.read(name, texts, lower)


def fetch(name: str, folder: str | Path) -> None:
    """Download files of a data set that `folder` lacks, each only if its checksum is right.

    Raises `MissingData`, with what to do by hand, if some have no address. Needs pooch:
    `pip install "jaxmeta[io]"`.
    """
    _checks.one_of("name", name, DATASETS)
    folder = Path(folder)
    for file in DATASETS[name].files:
        path = folder / file.path
        if file.address and not path.exists():
            pooch = _checks.package("pooch", "io")
            pooch.retrieve(file.address, f"sha256:{file.sha256}", fname=path.name, path=path.parent)
    _require(name, folder)


def status(name: str, folder: str | Path) -> str:
    """Say whether a data set is "there" in a folder, "missing", or there in "another edition"."""
    _checks.one_of("name", name, DATASETS)
    if _absent(name, Path(folder)):
        return "missing"
    files = DATASETS[name].files
    same = all(file.sha256 in (None, digest(Path(folder) / file.path)) for file in files)
    return "there" if same else "another edition"


def _remedy(name: str) -> str:
    return DATASETS[name].manual or f"fetch({name!r}, folder) downloads it"


def _absent(name: str, folder: Path) -> list[str]:
    return [file.path for file in DATASETS[name].files if not (folder / file.path).is_file()]


def _require(name: str, folder: Path) -> None:
    if absent := _absent(name, folder):
        expected, do = f"it for {name}", _remedy(name)
        _checks.fail(str(folder), f"no {', '.join(absent)}", expected, do, MissingData)


def _registered(
    *, reader: str, folder: str, files: dict[str, str], address: str | None = None, **others: str
) -> Dataset:
    found = (
        DataFile(f"{folder}/{name}", sha256 or None, address and f"{address}/{name}")
        for name, sha256 in files.items()
    )
    return Dataset(tuple(found), read=READERS[reader], **others)


_REGISTRY = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))

DATASETS: dict[str, Dataset] = {name: _registered(**entry) for name, entry in _REGISTRY.items()}
"""What `load` reads, by name."""
