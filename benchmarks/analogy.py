"""Time of Google's analogies, ours and gensim's evaluate_word_analogies, in one run.

    python -m benchmarks.analogy                             20,000 words x 1,000: some minutes
    python -m benchmarks.analogy --words 5000 --columns 100

Where `JAXMETA_DATA` is set, the 19,544 questions are Google's; otherwise as many are made up, of as
many words in as many sections. Vectors are made up, in float32: those of a pair differ by what all
pairs of a section share, and noise. The other words are random. Every measurement has a process of
its own, one after the other. Ours is of a first call, compilation included, and of the least of
three more. gensim is called once, with one thread or with one for each processor: whichever answers
the first questions faster, as on a busy machine the second may be many times slower. Both must
have the same questions right, up to the few that rounding decides.

Rates are of processor time, which a busy machine changes least. Flops: 2 k for each pair of a
question word and a candidate. The direct way, a product for each question, has 2 k for each pair of
a question and a candidate.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeta import Vectors
from jaxmeta.evaluate import Questions, analogy
from jaxmeta.files import to_gensim

SECTIONS, PAIRS, QUESTIONS = 14, 32, 19_544
TRIAL = 500


def google() -> Questions:
    """Google's questions, or a likeness."""
    words: list[tuple[str, str, str, str]] = []
    sections: list[str] = []
    if "JAXMETA_DATA" in os.environ:
        path = Path(os.environ["JAXMETA_DATA"]) / "analogy" / "questions-words.txt"
        name = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(":"):
                name = line[1:].strip()
            else:
                a, b, c, d = line.split()
                words.append((a, b, c, d))
                sections.append(name)
    else:
        rng = np.random.default_rng(0)
        for i in np.sort(rng.integers(SECTIONS, size=QUESTIONS)):
            one, other = rng.choice(PAIRS, 2, replace=False)
            words.append((f"a{i}x{one}", f"b{i}x{one}", f"a{i}x{other}", f"b{i}x{other}"))
            sections.append(f"section{i}")
    return Questions("Google", tuple(words), tuple(sections))


def made_up(questions: Questions, rows: int, columns: int) -> Vectors:
    """Vectors in which analogies hold, more or less."""
    rng = np.random.default_rng(1)
    shifts = {
        name: rng.standard_normal(columns, np.float32) for name in dict.fromkeys(questions.sections)
    }
    found: dict[str, np.ndarray] = {}
    for (a, b, _, _), section in zip(questions.words, questions.sections, strict=True):
        start = found.setdefault(a.lower(), rng.standard_normal(columns, np.float32))
        noise = 4 * rng.standard_normal(columns, np.float32)
        found.setdefault(b.lower(), start + shifts[section] + noise)
    for i in range(rows - len(found)):
        found[f"word{i}"] = rng.standard_normal(columns, np.float32)
    # Question words are spread over the whole vocabulary.
    order = rng.permutation(rows)
    words, matrix = list(found), np.stack(list(found.values()))
    return Vectors(tuple(words[i] for i in order), matrix[order])


def gemm_rate(n: int = 4096) -> float:
    """Flops of a float32 product in a second of a processor, the best of five."""
    multiply, x = jax.jit(jnp.matmul), jnp.ones((n, n), jnp.float32)
    multiply(x, x).block_until_ready()
    seconds = []
    for _ in range(5):
        start = time.process_time()
        multiply(x, x).block_until_ready()
        seconds.append(time.process_time() - start)
    return 2 * n**3 / min(seconds)


def ours(vectors: Vectors, questions: Questions) -> dict[str, Any]:
    """jaxmeta's."""
    times = []
    for _ in range(4):
        wall, processor = time.perf_counter(), time.process_time()
        total, *_ = analogy(vectors, questions)
        times.append((time.perf_counter() - wall, time.process_time() - processor))
    return {
        "first": times[0][0],
        "wall": min(wall for wall, _ in times[1:]),
        "processor": min(processor for _, processor in times[1:]),
        "right": total.items.nonzero()[0].tolist(),
        "rate": gemm_rate(),
    }


def gensim(vectors: Vectors, questions: Questions) -> dict[str, Any]:
    """The peer's, from a file."""
    peer = to_gensim(vectors)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "questions.txt"
        # One section, so that answers are in the order of the questions.
        lines = [": all", *(" ".join(words) for words in questions.words)]
        path.write_text("\n".join(lines), encoding="utf-8")
        wall, processor = time.perf_counter(), time.process_time()
        _, (found, _) = peer.evaluate_word_analogies(str(path), restrict_vocab=len(vectors.words))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    right = set(found["correct"])
    upper = [tuple(word.upper() for word in words) for words in questions.words]
    places = [i for i, words in enumerate(upper) if words in right]
    return {"first": wall, "wall": wall, "processor": processor, "right": places}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=1_000)
    parser.add_argument("--only", choices=("ours", "gensim"), help=argparse.SUPPRESS)
    parser.add_argument("--most", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    questions = google()
    if asked.only:
        vectors = made_up(questions, asked.words, asked.columns)
        some = Questions("Google", questions.words[: asked.most], questions.sections[: asked.most])
        print(json.dumps((ours if asked.only == "ours" else gensim)(vectors, some)))
        return

    def measure(who: str, threads: int | None = None, most: int | None = None) -> dict[str, Any]:
        command = [sys.executable, "-m", "benchmarks.analogy", "--only", who]
        command += ["--words", str(asked.words), "--columns", str(asked.columns)]
        command += [] if most is None else ["--most", str(most)]
        limit = {} if threads is None else {"OPENBLAS_NUM_THREADS": str(threads)}
        environment = os.environ | limit
        done = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
        return json.loads(done.stdout)

    if "JAXMETA_DATA" not in os.environ:
        print("JAXMETA_DATA is not set: questions are made up")
    distinct = len({word.lower() for question in questions.words for word in question[:3]})
    print(
        f"{len(questions.words):,} questions of {distinct} words, "
        f"{asked.words:,} candidates x {asked.columns:,}, float32"
    )
    trials = {n: measure("gensim", n, TRIAL)["wall"] for n in (1, os.cpu_count() or 1)}
    for n, seconds in trials.items():
        print(f"gensim, {n} threads: {1e3 * seconds / TRIAL:.2f} ms a question")
    mine, theirs = measure("ours"), measure("gensim", min(trials, key=lambda n: trials[n]))
    print(f"{'':<8}{'first':>10}{'again':>10}{'processor':>12}{'right':>9}")
    for name, row in (("gensim", theirs), ("ours", mine)):
        share = len(row["right"]) / len(questions.words)
        times = f"{row['first']:>8.2f} s{row['wall']:>8.2f} s{row['processor']:>10.2f} s"
        print(f"{name:<8}{times}{share:>9.2%}")
    ratios = {name: theirs[name] / mine[name] for name in ("first", "wall", "processor")}
    print(f"{'faster':<8}{ratios['first']:>8.0f} x{ratios['wall']:>8.0f} x", end="")
    print(f"{ratios['processor']:>10.0f} x")
    off = len(set(mine["right"]) ^ set(theirs["right"]))
    print(f"right in one but not in the other: {off} of {len(questions.words):,}")
    assert off < 1e-3 * len(questions.words), "the two have different answers"
    rate, flops = mine["rate"], 2 * distinct * asked.words * asked.columns
    direct = 2 * len(questions.words) * asked.words * asked.columns
    print(f"GEMM 4096 x 4096 x 4096: {rate / 1e9:.0f} Gflop in a second of a processor")
    print(
        f"ours: {flops:.1e} flops, {flops / mine['processor'] / rate:.0%} of that rate; "
        f"the direct way has {direct:.1e}, {direct / rate:.1f} processor seconds at that rate"
    )


if __name__ == "__main__":
    main()
