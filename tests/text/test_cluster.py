"""A cluster counts the same integers as one process, also if it loses a worker on the way."""

import os
import pathlib
import signal
import time
import tracemalloc
import warnings

import numpy as np
import pytest

from jaxmeta.text import (
    Corpus,
    Split,
    build_vocabulary,
    count_windows,
    given_vocabulary,
    load_counts,
    random_blocks,
    save_counts,
)
from jaxmeta.text import (
    corpus as reading,
)
from jaxmeta.text.cluster import count_on_cluster

distributed = pytest.importorskip("distributed", reason="needs the extra cluster")
dask = pytest.importorskip("dask", reason="needs the extra cluster")

pytestmark = [pytest.mark.one_leg, pytest.mark.slow]


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        # A busy machine may take long to start a killed worker again: it is not given up.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"}),
        distributed.LocalCluster(**settings, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def processes(client, without=None):
    """Wait for both workers, one of which may have to start again."""
    for _ in range(600):
        found = set(client.run(os.getpid, on_error="ignore").values())
        if len(found) == 2 and without not in found:
            return found
        time.sleep(0.1)
    pytest.fail("a worker did not start again within a minute")


@pytest.fixture
def corpus(tmp_path, rng, monkeypatch):
    """A text in many ranges, and small ones."""
    monkeypatch.setattr(reading, "PIECE", 1 << 10)
    for name, tokens in (("large", 8_000), ("one", 7), ("two", 300)):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(" ".join(["a", "b", *rng.choice(["a", "b", "c", "d"], tokens)]))
    return Corpus(tmp_path / "corpus")


SETTINGS = {"window": 3, "split": random_blocks(2, 50, 8)}


def assert_same_files(path, counts):
    """Arrays, names and all, are those that `save_counts` writes."""
    other = path.with_name("one.npz")
    save_counts(other, counts)
    with np.load(path) as x, np.load(other) as y:
        assert list(x) == list(y)
        for name in x:
            assert x[name].dtype == y[name].dtype
            np.testing.assert_array_equal(x[name], y[name])
    assert load_counts(path).words == counts.words
    other.unlink()


def test_counts_are_those_of_one_process(client, corpus, tmp_path):
    words, said = given_vocabulary(["b", "a", "d"]), []
    path = tmp_path / "deep" / "counts.npz"
    progress = lambda stage, fraction: said.append((stage, fraction))  # noqa: E731
    count_on_cluster(path, corpus, words, client=client, **SETTINGS, progress=progress)
    assert_same_files(path, count_windows(corpus, words, **SETTINGS))
    assert [file.name for file in path.parent.iterdir()] == ["counts.npz"]
    assert {stage for stage, _ in said} == {"counts"}
    fractions = [fraction for _, fraction in said]
    assert fractions == sorted(fractions)
    assert len(set(fractions)) > 10
    assert fractions[-1] == 1


def test_any_functions_and_files_of_any_kind(client, corpus, tmp_path):
    text = Corpus(corpus.path, tokenise=lambda text: text.replace("c", "").split())
    settings = {"unknown": "skip", "split": Split(2, lambda name: lambda i: (i + len(name)) % 2)}
    words = build_vocabulary(text)
    count_on_cluster(tmp_path / "x.npz", text, words, client=client, **settings)
    assert_same_files(tmp_path / "x.npz", count_windows(text, words, **settings))


@pytest.mark.parametrize("when", ["numbers", "counts"])
def test_a_worker_that_is_killed_loses_nothing(client, corpus, tmp_path, when):
    marker = str(tmp_path / "killed")

    def kill(_):
        # In the middle of a task, but only once.
        import os
        import signal

        try:
            file = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return
        os.write(file, str(os.getpid()).encode())
        os.kill(os.getpid(), signal.SIGKILL)

    def tokenise(text):
        if when == "numbers":
            kill(text)
        return text.split()

    def labels_of(_):
        def labels(positions):
            # A client that is killed is no worker; it asks for few positions.
            if when == "counts" and len(positions) > 100:
                kill(positions)
            return positions // 7 % 2

        return labels

    words = given_vocabulary(["a", "b"])
    before, split = processes(client), Split(2, labels_of)
    path = tmp_path / "counts.npz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # of connections that broke
        text = Corpus(corpus.path, tokenise=tokenise)
        count_on_cluster(path, text, words, client=client, split=split)
    killed = int(pathlib.Path(marker).read_text())
    assert killed in before
    processes(client, without=killed)
    assert_same_files(path, count_windows(corpus, words, split=split))


def test_a_worker_that_is_killed_between_tasks(client, corpus, tmp_path):
    words, left = given_vocabulary(["a", "b"]), list(processes(client))
    killed = left[0]

    def progress(_, fraction):
        if fraction > 0.5 and killed in left:
            left.remove(killed)
            os.kill(killed, signal.SIGKILL)

    path = tmp_path / "counts.npz"
    count_on_cluster(path, corpus, words, client=client, **SETTINGS, progress=progress)
    assert killed not in left
    processes(client, without=killed)
    assert_same_files(path, count_windows(corpus, words, **SETTINGS))


def test_the_client_holds_no_counts(client, tmp_path, rng):
    words = [f"w{i}" for i in range(3_000)]
    (tmp_path / "text").write_text(" ".join(rng.choice(words, 300_000)))
    text, vocabulary = Corpus(tmp_path / "text"), given_vocabulary(words)
    path = tmp_path / "counts.npz"
    tracemalloc.start()
    try:
        count_on_cluster(path, text, vocabulary, client=client, window=2)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 6e6
    assert most < path.stat().st_size / 3


def test_what_goes_wrong(client, corpus, tmp_path, rejected):
    path = tmp_path / "counts.npz"
    path.write_text("what was there before")
    good, nowhere = given_vocabulary(["a"]), given_vocabulary(["z"])
    for match, words, settings in (
        ("window: got 0", good, {"window": 0}),
        ("expected one of 'keep', 'skip'", good, {"unknown": "drop"}),
        ("got 1 words of which none is in the corpus", nowhere, {}),
        (r"no pair of words in part\(2, 1\)", good, {"split": Split(2, lambda _: lambda i: 0 * i)}),
    ):
        rejected(match, count_on_cluster, path, corpus, words, client=client, **settings)
    assert path.read_text() == "what was there before"
    assert sorted(x.name for x in tmp_path.iterdir()) == ["corpus", "counts.npz"]
