r"""Part-of-speech tagging shows how much vectors tell of the class of a word in its sentence.

Sentences fill rows as long as the longest of them, and the state of the LSTM becomes 0 where one
starts: one shape for all batches, one program, and hardly any padding. The words of a batch are
multiplied by the input kernel once, however often they come.
"""

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from jaxmeta import _checks
from jaxmeta.evaluate.readers import TaggedText
from jaxmeta.evaluate.scores import Score, accuracy_score, index_words, lookup
from jaxmeta.files import as_vectors
from jaxmeta.linalg import matmul
from jaxmeta.progress import Progress, silent

__all__ = ["released_tagging", "tagging"]


class _How(NamedTuple):
    """Static: how a tagger is trained."""

    tune: bool
    units: int
    epochs: int
    rate: float
    batch: int = 1
    released: bool = False
    """One sentence a step in the order of the file, SGD at one rate, vectors as they are."""


def tagging(
    vectors: Any,
    text: TaggedText,
    *,
    key: Key[Array, ""],
    tune: bool = False,
    vocabulary: Collection[str] | None = None,
    units: int = 100,
    epochs: int = 6,
    batch: int = 16,
    rate: float = 1e-2,
    progress: Progress | None = None,
) -> Score:
    r"""Score an LSTM tagger by its accuracy over the tokens of the test part.

    $$[i\ f\ g\ o] = x_tW + h_{t-1}R + b, \qquad
      c_t = \sigma(f)\,c_{t-1} + \sigma(i)\tanh g, \qquad h_t = \sigma(o)\tanh c_t,$$

    has $u$ `units`, and $h_tA + a$ goes into a softmax over tags. Adam, whose `rate` falls in a
    line to 0, minimises the mean cross entropy in `epochs` passes over batches of `batch` rows;
    `tune` trains the vectors too. `key` draws the first weights and the order of the batches.

    Vectors, in their dtype or float32 for float16, are multiplied by one number: words in the text
    get root mean square length $\sqrt k$. Words without a vector share one, which is learnt from 0;
    `released_tagging` has the paper's own settings. Words are looked up as they
    stand, else in lower case. All test tokens are scored, `items` in order; `covered` counts those
    with a vector. A tag that the training part lacks is never right.

    Cost of an epoch: $16ku$ flops (with `tune` $24ku$) per word of a batch, $24u^2$ per token.
    References: `hochreiter97`, `kingma15`.

    >>> import jax
    >>> text = TaggedText("toy", *[((("a", "D"), ("cat", "N")),)] * 2)
    >>> vectors = {"a": [1.0, 0.0], "cat": [0.0, 1.0]}
    >>> tagging(vectors, text, key=jax.random.key(0)).covered
    2
    """
    how = _How(tune, units, epochs, rate, batch)
    return _tagged(vectors, text, key, how, vocabulary, progress)


def released_tagging(
    vectors: Any,
    text: TaggedText,
    *,
    key: Key[Array, ""],
    vocabulary: Collection[str] | None = None,
    units: int = 100,
    epochs: int = 10,
    rate: float = 0.1,
    progress: Progress | None = None,
) -> Score:
    r"""Score the LSTM tagger of `tagging` as the code that the paper uses trains it.

    SGD at one `rate` takes a step for each sentence, in the order of the file. Vectors stay as they
    are, of any length, and each word without one gets its own, drawn from $[0, 1)^k$. First weights
    are those of `tagging`. The task is called "CoNLL-2003 released", after the data.

    Cost of an epoch: that of `tagging`, in steps for one sentence each.
    """
    how = _How(False, units, epochs, rate, released=True)
    score = _tagged(vectors, text, key, how, vocabulary, progress)
    return score._replace(task=f"{text.name} released")


def _tagged(
    vectors: Any, text: TaggedText, key: Array, how: _How, vocabulary: Any, progress: Any
) -> Score:
    for name in ("units", "epochs", "batch"):
        _checks.integer(name, getattr(how, name), least=1)
    _checks.positive("rate", how.rate, "try 1e-2")
    parts = [[s for s in part if s] for part in (text.train, text.test)]
    for name, part in zip(("train", "test"), parts, strict=True):
        if not part:
            _checks.fail(f"{text.name}.{name}", "no tokens", "sentences", "pass both parts")
    words, matrix = as_vectors(vectors)
    index = index_words(words, vocabulary)
    tokens = [[word for s in part for word, _ in s] for part in parts]
    rows = [np.array([lookup(index, word) for word in part]) for part in tokens]
    used = np.unique(np.concatenate(rows))
    used = used[used >= 0]
    if not (rows[0] >= 0).any():
        got = f"no word of the training part of {text.name}"
        _checks.fail("vectors", got, "some of its words", "check language, case and vocabulary")
    covered = int((rows[1] >= 0).sum())
    places = [np.where(own < 0, -1, np.searchsorted(used, own)) for own in rows]
    table = _scaled(matrix[used], [words[row] for row in used], how.released)
    if how.released:
        key, drawn = jax.random.split(key)
        table, places = _with_drawn(table, tokens, places, drawn)
    tags = {tag: i for i, tag in enumerate(sorted({tag for s in parts[0] for _, tag in s}))}
    width = max(len(s) for part in parts for s in part)

    def packed(part, place):
        gold = np.array([tags.get(tag, -1) for s in part for _, tag in s])
        given = [len(s) for s in part], place, gold
        return *_batches(*given, width=width, batch=how.batch, apart=how.released), gold

    (train, *_), (test, at, gold) = map(packed, parts, places)
    tagger, loss = _train(table, train, key, len(tags), how, progress or silent)
    if not math.isfinite(loss):
        got = f"{how.rate}, with which the loss became {loss}"
        _checks.fail("rate", got, "one that keeps it finite", "pass a smaller one")
    found = np.asarray(_predict(tagger, None if how.tune else table, test))
    right = found.transpose(2, 0, 1).ravel()[at] == gold
    score = accuracy_score(right, task=text.name, total=len(right))
    return score._replace(covered=covered)


def _with_drawn(
    table: Array, tokens: list[list[str]], places: list[np.ndarray], key: Array
) -> tuple[Array, list[np.ndarray]]:
    """Give each word without a vector one of its own, and return the table and all places."""
    lost: dict[str, int] = {}
    for part, own in zip(tokens, places, strict=True):
        for i in np.flatnonzero(own < 0):
            own[i] = len(table) + lost.setdefault(part[i], len(lost))
    drawn = jax.random.uniform(key, (len(lost), table.shape[1]), table.dtype)
    return jnp.concatenate([table, drawn]), places


def _scaled(
    matrix: Float[np.ndarray, "n k"], words: Sequence[str], as_they_are: bool = False
) -> Float[Array, "n k"]:
    """Multiply rows by one number, so that their root mean square length is sqrt(k), or by none."""
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.all():
        got = f"NaN or infinity for {words[int(np.argmin(finite))]!r}"
        _checks.fail("vectors", got, "finite numbers", "drop such words")
    largest = np.abs(matrix).max()
    if largest == 0:
        got = "zeros for all words of the text"
        _checks.fail("vectors", got, "other vectors", "check where they come from")
    dtype = np.promote_types(matrix.dtype, np.float32)
    if as_they_are:
        return jax.device_put(matrix.astype(dtype))
    matrix = matrix.astype(dtype) / dtype.type(largest)  # or squares may overflow
    rms = np.sqrt(np.mean(matrix**2, dtype=np.float64))
    return jax.device_put(matrix / dtype.type(rms))


class _Batches(NamedTuple):
    """Sentences stand in rows of one length, for a scan: batches, time, then rows of a batch."""

    words: Int[Array, "batches width batch"]
    """Places in `used`; one beyond its end where there is no word, or none with a vector."""
    starts: Bool[Array, "batches width batch"]
    tags: Int[Array, "batches width batch"]
    """The numbers of tags; -1 where no token is."""
    used: Int[Array, "batches most"]
    """Rows of the table; beyond its end where a batch has fewer words than another."""


def _batches(
    lengths: Sequence[int],
    rows: Int[np.ndarray, " tokens"],
    tags: Int[np.ndarray, " tokens"],
    *,
    width: int,
    batch: int,
    apart: bool = False,
) -> tuple[_Batches, Int[np.ndarray, " tokens"]]:
    """Return batches of sentences, and where each token is in their rows, laid end to end.

    Rows are filled up with sentences, or have one each, `apart` and in order.
    """
    starts, count = _pack(lengths, width)
    if apart:
        starts, count = np.arange(len(lengths)) * width, len(lengths)
    before = np.cumsum(lengths) - lengths
    places = np.repeat(starts - before, lengths) + np.arange(len(rows))
    batch = min(batch, count)
    number = -(-count // batch)

    def fill(places: np.ndarray, values: Any, other: Any) -> np.ndarray:
        flat = np.full(batch * number * width, other)
        flat[places] = values
        # Long sentences are in the first rows: each batch gets some.
        return flat.reshape(batch, number, width).transpose(1, 2, 0)

    words = fill(places, rows, -1)
    lists = [np.unique(own[own >= 0]) for own in words]
    most = max(1, *map(len, lists))
    used = np.full((number, most), np.iinfo(np.int32).max)
    local = np.full(words.shape, most)
    for i, (own, among) in enumerate(zip(words, lists, strict=True)):
        used[i, : len(among)] = among
        local[i][own >= 0] = np.searchsorted(among, own[own >= 0])
    tags = fill(places, tags, -1).astype(np.int32)
    packed = local.astype(np.int32), fill(starts, True, False), tags, used.astype(np.int32)
    # device_put, unlike jnp.asarray, compiles nothing for a new shape.
    return _Batches(*jax.device_put(packed)), places


def _pack(lengths: Sequence[int], width: int) -> tuple[Int[np.ndarray, " sentences"], int]:
    """Return where sentences start in rows laid end to end, best fit first, and how many rows."""
    starts = np.empty(len(lengths), np.int64)
    with_room: list[list[int]] = [[] for _ in range(width + 1)]
    count = 0
    for s in np.argsort(-np.asarray(lengths), kind="stable"):
        length = lengths[s]
        room = next((room for room in range(length, width) if with_room[room]), width)
        row = with_room[room].pop() if room < width else count
        count = max(count, row + 1)
        starts[s] = row * width + width - room
        with_room[room - length].append(row)
    return starts, count


class _Tagger(NamedTuple):
    """A tagger is its parameters, and the vectors if they are trained."""

    table: Float[Array, "n k"] | None
    unknown: Float[Array, " k"]
    """The vector of words without one."""
    kernel: Float[Array, "k gates"]
    recurrent: Float[Array, "units gates"]
    bias: Float[Array, " gates"]
    output: Float[Array, "units tags"]
    output_bias: Float[Array, " tags"]


def _lstm(
    inputs: Float[Array, "width batch gates"],
    recurrent: Float[Array, "units gates"],
    starts: Bool[Array, "width batch"],
) -> Float[Array, "width batch units"]:
    """Return the states h of an LSTM, 0 before a sentence; gates are in the order i, f, g, o."""

    def step(carry, here):
        x, start = here
        h, c = (jnp.where(start[:, None], 0, state) for state in carry)
        i, f, g, o = jnp.split(x + matmul(h, recurrent), 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((inputs.shape[1], recurrent.shape[0]), inputs.dtype)
    return lax.scan(step, (zeros, zeros), (inputs, starts))[1]


def _scores(tagger: _Tagger, rows: Any, words: Array, starts: Array) -> Array:
    """Score all tags for each token of a batch from `rows`, its vectors if the tagger has none."""
    rows = tagger.table if rows is None else rows
    # Apart from the others, or frozen vectors would get gradients too, only to be dropped.
    unknown = matmul(tagger.unknown[None, :], tagger.kernel)
    products = jnp.concatenate([matmul(rows, tagger.kernel), unknown]) + tagger.bias[None, :]
    inputs = products.at[words].get(mode="promise_in_bounds")
    h = _lstm(inputs, tagger.recurrent, starts)
    return matmul(h, tagger.output) + tagger.output_bias[None, None, :]


def _loss(tagger: _Tagger, rows: Any, words: Array, starts: Array, tags: Array) -> Array:
    """Return the mean cross entropy of the tokens of a batch; arguments are those of `_scores`."""
    scores = _scores(tagger, rows, words, starts)
    chosen = jnp.take_along_axis(scores, jnp.maximum(tags, 0)[:, :, None], axis=2)[:, :, 0]
    real = tags >= 0
    losses = jnp.where(real, jax.nn.logsumexp(scores, axis=2) - chosen, 0)
    return jnp.sum(losses) / jnp.maximum(jnp.sum(real, dtype=losses.dtype), 1)


def _train(
    table: Array, batches: _Batches, key: Array, tags: int, how: _How, progress: Progress
) -> tuple[_Tagger, float]:
    """Train a tagger, and return it with the mean loss of the batches of the last epoch."""
    tune, released = how.tune, how.released
    state = _start(key, table, tags=tags, units=how.units, tune=tune, released=released)
    frozen = None if tune else table
    total, loss = how.epochs * batches.used.shape[0], math.nan
    for epoch in range(1, how.epochs + 1):
        given = frozen, batches, key, epoch, how.rate, total
        *state, mean = _epoch(*state, *given, released=released)
        loss = float(mean)
        progress("tagging", epoch / how.epochs)
    return state[0], loss


@jax.jit(static_argnames=("tags", "units", "tune", "released"))
def _start(key, table, *, tags, units, tune, released=False):
    """Return the tagger before the first step, and the optimiser's state."""
    k, dtype = table.shape[1], table.dtype
    shapes = [(k, 4 * units), (units, 4 * units), (units, tags)]
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    # One draw for all kernels: every draw takes long to compile. Variances are 1 / k and 1 / u.
    drawn = jax.random.uniform(jax.random.fold_in(key, 0), (ends[-1],), dtype, -1, 1)
    kernel, recurrent, output = (
        math.sqrt(3 / shape[0]) * x.reshape(shape)
        for x, shape in zip(jnp.split(drawn, ends[:-1]), shapes, strict=True)
    )
    # A forget gate that starts open lets gradients through.
    bias = jnp.zeros(4 * units, dtype).at[units : 2 * units].set(1)
    zeros = jnp.zeros(k, dtype), jnp.zeros(tags, dtype)
    own = table if tune else None
    tagger = _Tagger(own, zeros[0], kernel, recurrent, bias, output, zeros[1])
    return tagger, _optimiser(jnp.ones((), dtype), 1, released).init(tagger)


def _optimiser(rate: Array, total: Any, released: bool) -> optax.GradientTransformation:
    if released:
        return optax.sgd(rate)
    # The schedule of optax would count in float32.
    return optax.adam(lambda step: rate * (1 - step.astype(rate.dtype) / total))


@jax.jit(donate_argnums=(0, 1), static_argnames="released")
def _epoch(tagger, adam, frozen, batches, key, epoch, rate, total, *, released):
    """Pass over the batches once, and return the tagger, optimiser's state and the mean loss."""
    dtype = tagger.kernel.dtype
    optimiser = _optimiser(jnp.asarray(rate, dtype), jnp.asarray(total, dtype), released)
    order = jnp.arange(batches.used.shape[0])
    if not released:
        order = jax.random.permutation(jax.random.fold_in(key, epoch), order)

    def step(carry, i):
        words, starts, tags, used = (x[i] for x in batches)
        # Only the vectors of this batch, and their moments, take part in the step.
        tagger, adam = _map_taggers(lambda t: t._replace(table=_rows(t.table, used)), carry)
        loss, gradient = jax.value_and_grad(_loss)(tagger, _rows(frozen, used), words, starts, tags)
        with jax.numpy_dtype_promotion("standard"):  # optax relies on it
            change, adam = optimiser.update(gradient, adam)
            tagger = optax.apply_updates(tagger, change)

        def put(new, old):
            if old.table is None:
                return new
            return new._replace(table=old.table.at[used].set(new.table, mode="drop"))

        return _map_taggers(put, (tagger, adam), carry), loss

    (tagger, adam), losses = lax.scan(step, (tagger, adam), order)
    return tagger, adam, jnp.mean(losses)


def _map_taggers(function: Any, *trees: Any) -> Any:
    """Apply `function` to each tagger in trees, such as Adam's moments; the first's rest stays."""

    def taggers(x):
        return isinstance(x, _Tagger)

    return jax.tree.map(
        lambda x, *rest: function(x, *rest) if taggers(x) else x, *trees, is_leaf=taggers
    )


def _rows(table: Array | None, used: Array) -> Array | None:
    return None if table is None else table.at[used].get(mode="clip")


@jax.jit
def _predict(tagger, frozen, batches):
    """Return the tag with the highest score for each token."""

    def one(here):
        rows = _rows(tagger.table if frozen is None else frozen, here.used)
        return jnp.argmax(_scores(tagger, rows, here.words, here.starts), axis=2)

    return lax.map(one, batches)
