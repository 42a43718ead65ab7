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


@pytest.fixture
def rejected():
    """Assert that a call is rejected with words that match."""

    def assert_rejected(match, function, *arguments, error=ValueError, **settings):
        with pytest.raises(error, match=match):
            function(*arguments, **settings)

    return assert_rejected
