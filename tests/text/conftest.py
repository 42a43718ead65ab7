"""What tests of text share."""

import pytest


@pytest.fixture
def file(tmp_path):
    """A function that writes a file and returns its path."""

    def write(content, name="text.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
