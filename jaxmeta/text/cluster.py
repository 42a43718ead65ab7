"""Counting on many machines, by a cluster of Dask.

    from dask.distributed import Client
    from jaxmeta.text import Corpus, build_vocabulary, load_counts, random_blocks
    from jaxmeta.text.cluster import count_on_cluster

    corpus = Corpus("/shared/text")
    vocabulary = build_vocabulary(corpus, size=20_000)
    with Client("tcp://scheduler:8786") as client:
        count_on_cluster("/shared/counts.npz", corpus, vocabulary, client=client,
                         split=random_blocks(0))
    counts = load_counts("/shared/counts.npz")

Counts are those of `count_windows`. What workers give to each other are files beside the result, so
that the scheduler and the client hold none of the counts: the client copies them into one file in
blocks. If a worker is killed, Dask gives its task to another, and what the task has read is all
that is read again.
"""

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from jaxmeta import _checks, _files
from jaxmeta.progress import Progress
from jaxmeta.text._parallel import Counting, count_in_folder
from jaxmeta.text.corpus import Corpus, Vocabulary
from jaxmeta.text.splits import Split

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["count_on_cluster"]


def count_on_cluster(
    path: str | Path,
    corpus: Corpus,
    vocabulary: Vocabulary,
    *,
    client: "Client",
    window: int = 5,
    unknown: str = "keep",
    split: Split | None = None,
    progress: Progress | None = None,
) -> None:
    """Count as `count_windows` does, by the workers of a cluster, and write as `save_counts` does.

    All workers read the corpus, and read and write in the folder of `path`, under the same names as
    the client; jaxmeta is installed on each. Functions of the corpus and of the split may be any
    that Dask can send. `progress` is called with "counts" and the fraction of the tasks that are
    done.

    Cost: that of `count_windows`, shared out among the workers by ranges of the text, of which
    packed files are one each. A worker takes about 40 bytes per different pair at one offset, or 24
    per different pair of its range; the folder 12 bytes per different pair of each range, and twice
    that while they are added up.
    """
    _checks.integer("window", window, least=1)
    _checks.one_of("unknown", unknown, ("keep", "skip"))
    counting = Counting(corpus, vocabulary.words, window, unknown, split)
    target = Path(path).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(
        dir=target.parent, prefix=f"{target.stem}.", suffix=".shards", ignore_cleanup_errors=True
    ) as made:
        folder, workers = Path(made), max(1, sum(client.nthreads().values()))
        executor = client.get_executor(pure=False)
        names = count_in_folder(counting, folder, executor, workers, progress)
        with _files.write_whole(target) as part, zipfile.ZipFile(part, "w") as whole:
            for name in names:
                whole.write(folder / f"{name}.npy", f"{name}.npy")
