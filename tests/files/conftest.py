"""What several tests of files ask for."""

import os
import pathlib

import pytest


@pytest.fixture
def file(tmp_path):
    """A function that writes a file and returns its path."""

    def write(content, name="v.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def data():
    if "JAXMETA_DATA" not in os.environ:
        pytest.skip("JAXMETA_DATA is not set")
    return pathlib.Path(os.environ["JAXMETA_DATA"]) / "vectors"


@pytest.fixture
def _our_words(hooked):
    if hooked:
        pytest.skip("jaxtyping checks the annotations, and objects before the library can")
