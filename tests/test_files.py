"""Files are whole or as they were, and a cache gives back what it was given."""

import errno
import hashlib
import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from jaxmeta import _files

pytestmark = pytest.mark.one_leg


def disk_is_full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def only(folder, name):
    return [path.name for path in folder.iterdir()] == [name]


def test_whole_replaces_and_makes_folders(tmp_path):
    path = tmp_path / "a" / "b" / "table.csv"
    for text in ("one", "two"):
        with _files.write_whole(path) as part:
            assert part.parent == path.parent
            assert part.suffix == ".csv"
            part.write_text(text)
        assert path.read_text() == text
        assert only(path.parent, "table.csv")


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_whole_keeps_what_was_there(tmp_path, error):
    path = tmp_path / "table.csv"
    path.write_text("good")

    def write():
        with _files.write_whole(path) as part:
            part.write_text("half")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "good"
    assert only(tmp_path, "table.csv")


def test_a_full_disk_leaves_nothing_half_written(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("good")

    def write():
        with _files.write_whole(path) as part:
            part.write_text("half")
            disk_is_full()

    with pytest.raises(OSError, match=r"table\.csv: could not be written .*free some space") as e:
        write()
    assert e.value.errno == errno.ENOSPC
    assert path.read_text() == "good"
    assert only(tmp_path, "table.csv")


def test_nothing_written_replaces_nothing(tmp_path):
    """As np.savez does, which writes to another name unless it ends in .npz."""
    path = tmp_path / "table"
    path.write_text("good")
    with (
        pytest.raises(OSError, match=r"table: got nothing, expected something to be written"),
        _files.write_whole(path) as part,
    ):
        np.savez(part, x=np.eye(2))
    assert path.read_text() == "good"
    with _files.write_whole(path) as part:
        part.write_text("")
    assert path.read_text() == ""


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "table.csv"
    with (
        pytest.raises(OSError, match=r"table\.csv: could not be written"),
        _files.write_whole(path),
    ):
        pass


def test_errors_of_other_files_are_not_taken_for_ours(tmp_path):
    def write():
        with _files.write_whole(tmp_path / "table.csv") as part:
            part.write_bytes((tmp_path / "absent").read_bytes())

    with pytest.raises(FileNotFoundError, match="absent") as e:
        write()
    assert "could not be written" not in str(e.value)


def write(path, text):
    with _files.write_whole(path) as part:
        part.write_text(text)


posix = pytest.mark.skipif(os.name == "nt", reason="no such files there")


@posix
def test_links_are_written_through(tmp_path):
    target, link = tmp_path / "deep" / "target", tmp_path / "link.csv"
    link.symlink_to(target)
    for text in ("new", "newer"):
        write(link, text)
        assert link.is_symlink()
        assert target.read_text() == text
        assert only(target.parent, "target")
    link.unlink()
    link.symlink_to(link)
    with pytest.raises(OSError, match=r"link\.csv: could not be written .*links"):
        write(link, "text")
    assert link.is_symlink()


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o755])
def test_the_mode_is_kept(tmp_path, mode):
    path = tmp_path / "table.csv"
    path.write_text("old")
    path.chmod(mode)
    with _files.write_whole(path) as part:
        assert stat.S_IMODE(part.stat().st_mode) == 0o600  # before anything is in it
        part.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="for root alone")
def test_the_owner_is_kept(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("old")
    os.chown(path, 65534, 65534)
    path.chmod(0o600)
    write(path, "new")
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (65534, 65534, 0o600)


@posix
def test_devices_pipes_and_folders_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(os.devnull)
    for name, got in (("pipe", "a pipe"), ("folder", "a folder"), ("link", "a device")):
        with pytest.raises(OSError, match=f"{name}: got {got}, expected a file or a new name"):
            write(tmp_path / name, "text")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path, seen = tmp_path / "table.csv", []
    path.write_text("old")

    def sync(handle):
        seen.append((os.fstat(handle).st_size, path.read_text()))

    monkeypatch.setattr(os, "fsync", sync)
    write(path, "newer")
    assert seen == [(5, "old")]
    assert path.read_text() == "newer"


KILLED = """
import os, signal, sys
from jaxmeta._files import write_whole
with write_whole(sys.argv[1]) as part:
    part.write_text("half")
    print(part.name, flush=True)
    {}
"""


@posix
def test_what_killed_writers_left_is_gone_after_the_next_write(tmp_path):
    path, other = tmp_path / "table.csv", tmp_path / "other.npz"
    kill = KILLED.format("os.kill(os.getpid(), signal.SIGKILL)")
    found = subprocess.run([sys.executable, "-c", kill, path], capture_output=True, text=True)
    assert found.returncode == -signal.SIGKILL
    assert only(tmp_path, found.stdout.strip())
    (tmp_path / "x.part.csv").write_text("of others")
    wait = [sys.executable, "-c", KILLED.format("sys.stdin.read()"), path]
    with subprocess.Popen(wait, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as living:
        part = living.stdout.readline().strip()
        with _files.write_whole(other) as own:
            write(tmp_path / "third", "text")
            assert {part, own.name} < {path.name for path in tmp_path.iterdir()}
            own.write_text("text")
        living.stdin.close()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"table.csv", "other.npz", "third", "x.part.csv"}
    assert path.read_text() == "half"


def test_digest(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"abc" * 100_000)
    assert _files.digest(path) == hashlib.sha256(b"abc" * 100_000).hexdigest()


class Maker:
    """Counts how often it is asked."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return {"x": np.arange(1000), "y": np.eye(2)}


def same(found):
    assert list(found) == ["x", "y"]
    np.testing.assert_array_equal(found["x"], np.arange(1000))
    np.testing.assert_array_equal(found["y"], np.eye(2))


def test_cache(tmp_path):
    make, cache = Maker(), _files.Cache(tmp_path / "cache")
    assert cache.find("stage", {"a": 1, "b": [2.5]}) is None
    for key in ({"a": 1, "b": [2.5]}, {"b": [2.5], "a": 1}):
        same(cache.arrays("stage", key, make))
        same(cache.find("stage", key))
    assert make.calls == 1
    assert cache.find("stage", {"a": 2}) is None
    assert cache.find("other", key) is None
    (file,) = (tmp_path / "cache").iterdir()
    key = hashlib.sha256(b'{"a": 1, "b": [2.5]}').hexdigest()[:20]
    assert file.name == f"stage-{key}.npz"
    cache.arrays("stage", {"a": 2}, make)
    cache.arrays("other", {"a": 2}, make)
    assert make.calls == 3


def test_no_cache():
    make = Maker()
    for _ in range(2):
        same(_files.Cache(None).arrays("stage", {}, make))
        assert _files.Cache(None).find("stage", {}) is None
    assert make.calls == 2


@pytest.mark.parametrize("length", [0, 10, 1000, -10], ids="{} bytes".format)
def test_a_damaged_cache_is_made_anew(tmp_path, length):
    make, cache = Maker(), _files.Cache(tmp_path)
    cache.arrays("stage", {}, make)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:length])
    assert cache.find("stage", {}) is None
    for _ in range(2):
        same(cache.arrays("stage", {}, make))
    assert make.calls == 2


def flipped(data, place):
    return data[: place // 8] + bytes([data[place // 8] ^ 1 << place % 8]) + data[place // 8 + 1 :]


def test_no_flipped_bit_in_a_cache_is_taken_for_what_was_kept(tmp_path):
    """Headers of the arrays and of the archive among them: checksums of zip are for its content."""
    cache = _files.Cache(tmp_path)
    kept = {
        "x": np.arange(6.0),
        "y": np.asfortranarray(np.eye(2, 3)),
        "z": np.array(3),
        "e": np.eye(0),
    }
    cache.arrays("stage", {}, lambda: kept)
    (file,) = tmp_path.iterdir()
    data = file.read_bytes()
    for place in range(0, 8 * len(data), 7):
        file.write_bytes(flipped(data, place))
        found = cache.find("stage", {})
        if found is not None:
            assert list(found) == list(kept)
            for name, array in kept.items():
                np.testing.assert_array_equal(found[name], array, strict=True)
    file.write_bytes(data)
    assert cache.find("stage", {}) is not None
    data = flipped(data, data.index(b"'<f8'") * 8 + 8)  # big-endian
    file.write_bytes(data)
    assert cache.find("stage", {}) is None


def test_an_entry_under_the_name_of_another_is_noticed(tmp_path):
    make, cache = Maker(), _files.Cache(tmp_path)
    cache.arrays("stage", {"a": 1}, make)
    (first,) = tmp_path.iterdir()
    cache.arrays("stage", {"a": 2}, make)
    (second,) = set(tmp_path.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    assert cache.find("stage", {"a": 1}) is not None
    assert cache.find("stage", {"a": 2}) is None


def test_a_full_disk_leaves_the_cache_as_it_was(tmp_path, monkeypatch):
    make, cache = Maker(), _files.Cache(tmp_path)
    cache.arrays("stage", {}, make)
    (file,) = tmp_path.iterdir()
    before = file.read_bytes()

    def savez(path, **_):
        path.write_bytes(b"half")
        disk_is_full()

    monkeypatch.setattr(np, "savez", savez)
    with pytest.raises(OSError, match="free some space"):
        cache.arrays("stage", {"other": 1}, make)
    assert only(tmp_path, file.name)
    assert file.read_bytes() == before
    same(cache.arrays("stage", {}, make))
