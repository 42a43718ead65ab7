"""Rows over 1, 2, 4 and 8 devices, and over two processes, give what they give on one device."""

import json
import os
import pathlib
import socket
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers import DTYPE, IN_64_BIT
from mesh_rows import ON_FEW, TABLE, N

from jaxmeta import eigen, mesh

HERE = pathlib.Path(__file__).parent
OWN = 1024  # rows of each device, of eight: nothing as long goes between them


def start(*arguments):
    """A process with so many devices as the second argument says."""
    paths = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(HERE / "mesh_rows.py"), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": paths, "JAX_ENABLE_X64": str(int(IN_64_BIT))}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def result(process):
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    return json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module")
def table():
    return result(start("table", 8))


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_rows_on_eight_devices(table, name):
    """Results and derivatives are the same, and no collective is as long as one device's rows."""
    assert N > 7 * OWN
    assert table[name]["difference"] <= TABLE[name].terms
    assert table[name]["moved"] < OWN


@pytest.mark.slow
def test_what_gathers_is_seen(table):
    assert table["gathers"]["moved"] >= OWN


@pytest.mark.one_leg
@pytest.mark.slow
def test_other_numbers_of_devices():
    found = result(start("few", 8))
    assert set(found) == {"1", "2", "4"}
    for number, rows in found.items():
        assert set(rows) == set(ON_FEW)
        for name, one in rows.items():
            assert one["difference"] <= TABLE[name].terms, (number, name)
            assert one["moved"] < OWN, (number, name)


@pytest.mark.slow
def test_filling_up_changes_nothing():
    """For more devices than rows, too, and for rows that a source lacks."""
    found = result(start("padding", 8))
    assert len(found) == 6
    for n, one in found.items():
        assert one["difference"] <= 16, n


@pytest.mark.slow
@pytest.mark.one_leg
def test_calls_without_a_program_around_them():
    found = result(start("direct", 8))
    for name, one in found.items():
        assert one["difference"] <= 64, name
        assert one["moved"] < OWN, name


@pytest.mark.slow
@pytest.mark.one_leg
def test_eigenpairs_of_spread_signals():
    found = result(start("eigenpairs", 8))
    first, second = found.pop("moved")
    spread = {"dense": "P('rows',)", "sparse": "P('rows',)", "sparse, filled up": "P()"}
    assert {name: one["spread"].replace("PartitionSpec", "P") for name, one in found.items()} == (
        spread
    )
    for one in found.values():
        assert one["difference"] <= 64
        assert one["residual"] <= 1e-3
    # A product takes its block of columns as a whole; nothing else depends on n.
    assert first.pop("product") == [1024 * eigen.BLOCK]
    assert second.pop("product") == [2048 * eigen.BLOCK]
    assert first == second


@pytest.mark.slow
@pytest.mark.one_leg
def test_words_are_looked_up_where_they_are():
    found = result(start("tasks", 8))
    refused, (first, second) = found.pop("refused"), found.pop("moved")
    assert refused.startswith("vectors: got NaN or infinity in row 7")
    assert first == second
    assert max(first) < OWN
    assert len(found) == 7
    for name, (one, many) in found.items():
        assert one == many, name
    for name in ("three_cos_add", "paper_cos_add", "three_cos_mul"):
        assert found[f"{name}, 510"][0] == [True, False] * 20


@pytest.mark.slow
@pytest.mark.one_leg
def test_two_processes(tmp_path, rng):
    """Each reads its part of the files, and has its part of the results."""
    n, scales = 501, (1.0, 0.5, 2.0)
    for name, width, scale in zip("efg", (4, 3, 5), scales, strict=True):
        rows = scale * rng.normal(size=(n, width)) * np.linspace(1, 3, width)
        np.save(tmp_path / f"{name}.npy", rows.astype(DTYPE))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = [start("host", 2, number, port, tmp_path) for number in (0, 1)]
    first, second = map(result, processes)
    for name in ("devices", "path"):
        assert first[name] == second[name] == {"devices": [2, 4], "path": 0}[name]
    for found in (first, second):
        assert found["difference"] <= 64
        assert found["eigenvalues"] <= 64
        one, many = found["analogies"]
        assert one == many
        assert any(one)
    assert [sorted(a + b) for a, b in zip(first["read"], second["read"], strict=True)] == (
        [[[0, 126], [126, 252], [252, 378], [378, 501]]] * 3
    )
    assert not any(part in second["read"][0] for part in first["read"][0])


def test_rows_of_files_and_of_arrays(tmp_path, rng):
    rows = rng.normal(size=(5, 3))
    np.save(tmp_path / "rows.npy", rows)
    expected = jnp.asarray(rows, DTYPE)
    swapped = rows.astype(rows.dtype.newbyteorder("S"))
    for given in (rows, swapped, tmp_path / "rows.npy", str(tmp_path / "rows.npy"), expected):
        found = mesh.shard_rows(given)
        np.testing.assert_array_equal(found, expected)
        assert found.sharding.spec == jax.sharding.PartitionSpec("rows")
    flags = mesh.shard_rows(rows > 0)
    np.testing.assert_array_equal(flags, rows > 0)


@pytest.mark.parametrize(
    ("rows", "match"),
    [(np.zeros((0, 3)), r"rows: got shape \(0, 3\)"), ((np.ones(3),), "rows: got a tuple")],
)
def test_what_has_no_rows_raises(rejected, rows, match):
    rejected(match, mesh.shard_rows, rows)


def test_results_with_rows_are_told_from_others():
    """By what happens to them if there is one row more, not by sizes that happen to be equal."""
    rows = mesh.shard_rows(np.eye(3, dtype=DTYPE))
    found = mesh.over_rows(lambda x: (x + 1, x.T @ x, x.T, jnp.sum(x)), n=3)(rows)
    for x, expected in zip(found, (np.eye(3) + 1, np.eye(3), np.eye(3), 3), strict=True):
        np.testing.assert_array_equal(x, expected)


def test_other_numbers_of_rows_raise(rejected):
    rows = mesh.shard_rows(np.ones((4, 2), DTYPE))
    rejected("arguments: got 4 rows, expected n = 3", mesh.over_rows(jnp.sum, n=3), rows)
    rejected("n: got 0", mesh.over_rows, jnp.sum, n=0)
