"""What functions make of rows on several devices, beside what they make of them on one.

`test_mesh.py` runs this in processes of its own: devices are there before JAX looks. Prints JSON.
"""

import json
import re
import sys
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

import jaxmeta as jm
from jaxmeta import eigen, mesh
from jaxmeta.covariance import mean_of, raw_gram
from jaxmeta.evaluate import analogies, analogy, similarity
from jaxmeta.evaluate.analogies import Asked, paper_cos_add, three_cos_add, three_cos_mul
from jaxmeta.evaluate.readers import Questions, WordPairs
from jaxmeta.similarity import cka, procrustes_distance, unbiased_cka

N = 8 * 1024 - 3  # rows: the last device has some that fill up
MOVES = re.compile(
    r"= (.*?) (?:all-gather|all-reduce|all-to-all|collective-\w+|reduce-scatter|ragged)[\w-]*\("
)


class Row(NamedTuple):
    """A function, and which of the arguments below it takes."""

    call: Any
    arguments: str
    slopes: bool = True
    """Whether derivatives of all that it returns are compared too."""
    terms: int = 64
    """How many roundings are in a row."""


def plan(name, **settings):
    def combined(*sources):
        given = jm.Settings(**settings)
        return jm.apply(jm.fit(name, sources, given), sources)

    return combined


def combined(sources, present):
    stats = jm.moments(sources, present)
    return jm.apply(jm.fit("default", stats), sources, present)


def sums(e, f, present):
    """What is unique of moments, whose shifts and pieces are not."""
    pairs = jm.moments((e, f), present, parts=("raw",)).raw
    return [(pair.rows, mean_of(pair), raw_gram(pair).value) for pair in pairs.values()]


def quadratic(g, e, f):
    found = jm.pip_quadratic(g, (e, f))
    return found[:3], jm.exact_weights(found).weights


TABLE = {
    "moments": Row(sums, "efp", slopes=False),
    "fit and apply: default": Row(lambda e, f, p: combined((e, f), p), "efp"),
    "fit and apply: aligned": Row(plan("aligned", sigmas=(0.1, 0.2)), "ef", slopes=False),
    "fit and apply: PCA": Row(plan("PCA", k=2), "ef", slopes=False),
    "svd_reduce": Row(lambda e, f: jm.svd_reduce((e, f), k=3), "ef"),
    "standardise": Row(jm.standardise, "e"),
    "spectrum_of": Row(lambda e: jm.spectrum_of(e, alpha=0.5), "e"),
    "pip_loss": Row(jm.pip_loss, "eg"),
    "pip_curve": Row(lambda s, t: jm.pip_curve(s, t, alpha=0.5), "st"),
    "bound_terms": Row(lambda s, t, u: jm.bound_terms(s, (t, u), alpha=0.5), "stu"),
    "lemma1": Row(lambda s, u: jm.bounds.lemma1(s.vectors[:, :3], u.vectors), "su"),
    "pip_quadratic and exact_weights": Row(quadratic, "gef"),
    "cka": Row(cka, "ef"),
    "unbiased_cka": Row(unbiased_cka, "ef"),
    "procrustes_distance": Row(procrustes_distance, "ef"),
    "rotated_average": Row(lambda e, f: jm.combine.rotated_average((e[:, :3], f))[:2], "ef"),
}
ON_FEW = ("fit and apply: default", "svd_reduce", "pip_loss")
GATHERS = Row(lambda e: jnp.linalg.qr(e, mode="r"), "e", slopes=False)


def arguments(n=N):
    """Rows of sources e and f, of an ideal g, what is present, and spectra s, t and u."""
    rng = np.random.default_rng(20220101)
    dtype = jnp.zeros(()).dtype

    def frame(k):
        return np.linalg.qr(rng.normal(size=(n, k)))[0]

    def spectrum(*values):
        return jm.Spectrum(frame(len(values)).astype(dtype), np.asarray(values, dtype))

    e = frame(4) * [9.0, 7.0, 4.0, 2.0] + 0.01
    f = e[:, :3] * [0.8, -0.7, 0.6] + 2 * frame(3) - 0.02
    e, f, g = (x.astype(dtype) for x in (e, f, 9 * frame(5)))
    spectra = spectrum(6.0, 5.0, 4.0, 3.0, 2.0), spectrum(5.0, 3.0), spectrum(4.0, 2.0, 1.0)
    given = e, f, g, rng.uniform(size=(n, 2)) < 0.8, *spectra
    return dict(zip("efgpstu", given, strict=True))


def spread(tree, devices):
    """All that has a row for each word, over devices."""
    return jax.tree.map(
        lambda x: mesh.shard_rows(x, devices) if x.ndim == 2 else jnp.asarray(x), tree
    )


def floats(tree):
    return [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating)]


def total(tree):
    """The sum of all results, each with a weight of its own."""
    return sum(jnp.sum(x * jnp.cos(_places(x))) for x in floats(tree))


def _places(x):
    """A number for each entry; it is as spread as they are."""
    axes = (jax.lax.broadcasted_iota(x.dtype, x.shape, i) for i in range(x.ndim))
    return sum(((i + 1) * axis for i, axis in enumerate(axes)), start=jnp.ones_like(x))


def with_slopes(row):
    """The results of a row, and the derivatives of their sum by all numbers that it takes."""

    def call(*given):
        leaves, structure = jax.tree.flatten(given)
        which = [i for i, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.floating)]

        def loss(moving):
            filled = [*leaves]
            for i, x in zip(which, moving, strict=True):
                filled[i] = x
            out = row.call(*jax.tree.unflatten(structure, filled))
            return total(out), out

        slopes, out = jax.grad(loss, has_aux=True)([leaves[i] for i in which])
        return out, slopes

    return call if row.slopes else row.call


def moved(text):
    """How many numbers each collective operation of a program has."""
    return [
        max(int(np.prod([int(d) for d in shape.split(",") if d])) for shape in shapes)
        for shapes in (re.findall(r"\[([\d,]*)\]", found) for found in MOVES.findall(text))
    ]


def difference(one, many):
    """The largest difference of any array, relative to its largest number, in units of eps."""
    pairs = zip(floats(one), floats(many), strict=True)
    return max(_apart(*map(np.asarray, pair)) for pair in pairs)


def _apart(x, y):
    """The same of two arrays, of which the second may be filled up; infinite for NaN."""
    y = y[tuple(map(slice, x.shape))]
    largest = np.abs(x).max(initial=0)
    found = np.abs(x - y).max(initial=0) / (np.where(largest == 0, 1, largest))
    return float(np.nan_to_num(found / np.finfo(x.dtype).eps, nan=np.inf))


def compared(row, given, n=N, number=None):
    """How far apart results are, and what goes between devices, all or the first few."""
    call, chosen = with_slopes(row), [given[name] for name in row.arguments]
    everywhere = mesh.over_rows(call, n=n)
    placed = spread(chosen, mesh.row_mesh(jax.devices()[:number]))
    many = everywhere(*placed)
    text = everywhere.lower(*placed).compile().as_text()
    one = jax.jit(call)(*jax.tree.map(jnp.asarray, chosen))
    return {"difference": difference(one, many), "moved": max(moved(text), default=0)}


def table(*names):
    """All rows, or those named, and one that gathers."""
    given = arguments()
    found = {name: compared(TABLE[name], given) for name in names or TABLE}
    return found | {"gathers": compared(GATHERS, given)}


def few():
    """Some rows without derivatives, on some of the devices."""
    given, rows = arguments(), {name: TABLE[name]._replace(slopes=False) for name in ON_FEW}
    return {
        number: {name: compared(row, given, number=number) for name, row in rows.items()}
        for number in (1, 2, 4)
    }


def padding():
    """Means, counts and losses of as few rows as can be, on all devices."""

    def everything(e, f, p):
        centred = jm.prepare.centre_rows(e, present=p[:, 0])
        return centred, jnp.mean(e, axis=0), jm.pip_loss(e, f), sums(e, f, p)

    row, found = Row(everything, "efp", slopes=False), {}
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 8, 9, 17):
        dtype = jnp.zeros(()).dtype
        e, f = rng.normal(size=(2, n, 3)).astype(dtype)
        found[n] = compared(row, {"e": e, "f": f, "p": rng.uniform(size=(n, 2)) < 0.6}, n)
    return found


def direct():
    """Calls as on one device, of rows that need no filling up, in a mesh of the user's own."""
    given = arguments(N + 3)
    e, f, g = (given[name] for name in "efg")
    mine = jax.make_mesh((4, 2), ("a", "b"))  # with explicit axes, as is JAX's default
    placed = [mesh.shard_rows(x, mine) for x in (e, f, g)]
    calls = {
        "meta_embedding": lambda e, f, _: jm.meta_embedding("default", (e, f)),
        "exact": lambda e, f, g: jm.meta_embedding("exact", (e, f), jm.Settings(ideal=g)),
        "svd_reduce": lambda e, f, _: jm.svd_reduce((e, f), k=3),
        "cka": lambda e, f, _: cka(e, f),
    }
    found = {}
    for name, call in calls.items():
        one, many = call(*map(jnp.asarray, (e, f, g))), call(*placed)
        with jax.set_mesh(mesh.row_mesh()):
            text = jax.jit(call).lower(*placed).compile().as_text()
        found[name] = {"difference": difference(one, many), "moved": max(moved(text), default=0)}
    # Constants of a program for one device are gathered there, but right.
    inside = jax.jit(lambda x: x * jm.pip_loss(*placed[::2]))(jnp.ones_like(jnp.asarray(e[0, 0])))
    one = jm.pip_loss(*map(jnp.asarray, (e, g)))
    return found | {"constants": {"difference": difference(one, inside), "moved": 0}}


def spiked(n):
    """A sparse symmetric matrix with some eigenvalues far from the others."""
    noise = scipy.sparse.random_array((n, n), density=0.02, rng=np.random.default_rng(0))
    spikes = np.where(np.arange(n) < 12, 40 - 2.0 * np.arange(n), 0)
    return (noise + noise.T + scipy.sparse.diags_array(spikes)).astype(jnp.zeros(()).dtype)


def pairs_of(multiply, n):
    return eigen.leading_eigenpairs(multiply, n=n, rank=8, key=jax.random.key(0), dense=64)


def eigenpairs():
    """Leading eigenpairs of dense and sparse signals, and what the steps of the loop move."""
    found = {}
    for name, n, form in (
        ("dense", 1024, scipy.sparse.csr_array.toarray),
        ("sparse", 1024, scipy.sparse.csr_array),
        ("sparse, filled up", 1021, scipy.sparse.csr_array),
    ):
        signal = form(spiked(n).tocsr())
        one, many = (
            pairs_of(eigen.multiply_by(signal), n),
            pairs_of(mesh.multiply_spread(signal), n),
        )
        found[name] = {
            "difference": difference(one.values, many.values),
            "residual": float(np.max(many.residuals)),
            "spread": str(many.vectors.sharding.spec),
        }
    return found | {"moved": [_moved_by_steps(n) for n in (1024, 2048)]}


def _moved_by_steps(n):
    multiply = mesh.multiply_spread(np.eye(n, dtype=jnp.zeros(()).dtype))
    with jax.set_mesh(mesh.row_mesh()):
        krylov = eigen._start(n, jax.random.key(0), jnp.zeros(()).dtype, jnp.zeros((n, 0)))
        image = multiply(krylov.block)
        vectors = krylov.block
        programs = {
            "product": (multiply.func, (*multiply.args, krylov.block)),
            "absorb": (eigen._absorb, (krylov.basis, krylov.projected, krylov.block, image, 0)),
            "refresh": (
                eigen._refresh,
                (krylov.basis, image, jnp.ones(32, bool), jax.random.key(0)),
            ),
            "rayleigh": (eigen._rayleigh, (vectors, [image])),
        }
        return {
            name: sorted(moved(program.lower(*given).compile().as_text()))
            for name, (program, given) in programs.items()
        }


def tasks(n=1021):
    """Similarity and analogies, whose words are looked up where they are."""
    rng = np.random.default_rng(0)
    words = tuple(f"w{i}" for i in range(n))
    rows = rng.normal(size=(n, 5)).astype(jnp.zeros(()).dtype)
    rows[n // 2] = 0
    sides = (tuple(words[i] for i in rng.integers(n, size=30)) for _ in range(2))
    pairs, placed = WordPairs("pairs", *sides, rng.normal(size=30)), mesh.shard_rows(rows)
    found = {"similarity": [similarity((words, x), pairs).value for x in (rows, placed)]}
    half = set(words[: n // 2])
    for rule in (three_cos_add, paper_cos_add, three_cos_mul):
        asked = Questions("asked", _answered(rows, words, rng, rule), ("all",) * 40)
        for limit in (None, half):
            scores = (
                analogy((words, x), asked, method=rule, vocabulary=limit)[0] for x in (rows, placed)
            )
            found[f"{rule.__name__}, {limit and len(limit)}"] = [x.items.tolist() for x in scores]
    rows[7, 0] = np.nan
    try:
        analogy((words, mesh.shard_rows(rows)), asked)
    except ValueError as error:
        found["refused"] = str(error)
    return found | {"moved": [_moved_by_analogies(k * 1024) for k in (1, 2)]}


def _answered(rows, words, rng, rule):
    """Forty questions on the first half of the words: every other answer is not the best there."""
    own = rows[: len(rows) // 2].astype(float)
    lengths = np.linalg.norm(own, axis=1, keepdims=True)
    cosines = own @ own.T / lengths / lengths.T
    questions = []
    for i in range(40):
        abc = rng.choice(len(own), 3, replace=False)
        scores = rule(*(Asked(cosines[j : j + 1], lengths[j : j + 1]) for j in abc))[0]
        scores[abc] = -np.inf
        questions.append(tuple(words[j] for j in (*abc, np.argsort(-scores)[i % 2])))
    return tuple(questions)


def _moved_by_analogies(n):
    rows, after = (mesh.shard_rows(np.ones((n, k), x)) for k, x in ((5, np.float32), (1, np.int32)))
    words, lengths, asked = np.ones((4, 5), np.float32), np.ones((4, 1), np.float32), (2, 8, 3)
    blocks = np.zeros(asked, np.int32)
    with jax.set_mesh(mesh.row_mesh()):
        given = words, lengths, blocks, blocks, rows, after, three_cos_add, 128
        return sorted(moved(analogies._spread_best.lower(*given).compile().as_text()))


class Read:
    """An array on disk that notes which rows are read."""

    def __init__(self, path):
        self.rows, self.read = np.load(path, mmap_mode="r"), []
        self.shape, self.dtype = self.rows.shape, self.rows.dtype

    def __getitem__(self, some):
        self.read.append([some.start, some.stop])
        return self.rows[some]


def host(_number, _port, folder):
    """One of two processes, each with devices of its own, and files of rows that both can read."""
    files = [Read(f"{folder}/{name}.npy") for name in "efg"]
    n = len(files[0].rows)
    e, f, g = (mesh.shard_rows(x) for x in files)

    def program(e, f, g):
        plan = jm.fit("default", (e, f))
        return plan.maps, jm.apply(plan, (e, f)), jax.value_and_grad(jm.pip_loss)(e, g)

    many = mesh.over_rows(program, n=n)(e, f, g)
    one = jax.jit(program)(*(jnp.asarray(x.rows) for x in files))
    signal = spiked(1024)
    pairs = pairs_of(mesh.multiply_spread(signal), 1024)
    words = tuple(f"w{i}" for i in range(n))
    answered = _answered(files[0].rows, words, np.random.default_rng(0), three_cos_add)
    asked = Questions("asked", answered, ("all",) * 40)
    scores = [analogy((words, x), asked)[0] for x in (np.asarray(files[0].rows), e)]
    return {
        "devices": [jax.process_count(), jax.device_count()],
        "read": [x.read for x in files],
        "difference": max(map(_of_own_part, jax.tree.leaves(one), jax.tree.leaves(many))),
        "eigenvalues": difference(pairs_of(eigen.multiply_by(signal), 1024).values, pairs.values),
        "analogies": [score.items.tolist() for score in scores],
        "path": float(jnp.sum(mesh.shard_rows(f"{folder}/e.npy")) - jnp.sum(e)),
    }


def _of_own_part(one, many):
    """The difference of what this process has of an array."""
    one = np.asarray(one)
    own = ((np.asarray(one[x.index]), np.asarray(x.data)) for x in many.addressable_shards)
    return max(_apart(here, there) for here, there in own)


def main(what, devices, *rest):
    jax.config.update("jax_num_cpu_devices", int(devices))
    jax.config.update("jax_disable_most_optimizations", True)
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    jax.config.update("jax_numpy_rank_promotion", "raise")
    if what == "host":
        number, port, _ = rest
        jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=int(number))
    print(json.dumps(globals()[what](*rest)))


if __name__ == "__main__":
    main(*sys.argv[1:])
