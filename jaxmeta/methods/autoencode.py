r"""Autoencoded meta-embeddings are codes from which every source can be read back.

Source $j$ has an encoder, one layer $h_j = \phi(\tilde s_jW_j + b_j)$, and a linear decoder $g_j$
of its code $h_j$ (decoupled) or of the meta-embedding. In $\tilde s_j$ some entries of the row
$s_j$ are 0: masking noise, drawn anew for every batch. With means over words and dimensions,

$$\sum_j f_j\,\mathrm{mean}\,(s_j - g_j)^2 + c\sum_{i<j}\mathrm{mean}\,(h_i - h_j)^2$$

is minimised; the second part, on the first $\min(k_i, k_j)$ units, is the decoupled method's alone.
In place of squared errors the first may have another cost of a row, such as
`squared_cosine_proximity`.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Float, Key

from jaxmeta import _checks
from jaxmeta._types import Numbers, Present, Scalar, Sources
from jaxmeta.affine import check_widths
from jaxmeta.combine import known
from jaxmeta.linalg import matmul, unit
from jaxmeta.progress import Progress, silent

__all__ = [
    "Autoencoded",
    "Autoencoder",
    "Layer",
    "Training",
    "autoencoded_rows",
    "averaged_autoencoder",
    "concatenated_autoencoder",
    "decoupled_autoencoder",
    "squared_cosine_proximity",
    "squared_error",
]

Activation = Callable[[Array], Array]


Rows = Float[Array, "n k"]


@_checks.checked()
def squared_error(decoded: Rows, rows: Rows) -> Float[Array, " n"]:
    """The mean of squared errors of each row. Reference: `bao18`."""
    _checks.embeddings("rows", (decoded, rows))
    return jnp.mean((decoded - rows) ** 2, axis=1)


@_checks.checked()
def squared_cosine_proximity(decoded: Rows, rows: Rows) -> Float[Array, " n"]:
    r"""$(1 - \cos)^2$ of each row and what is decoded for it; a row of zeros costs 1.

    Lengths do not count, so that a decoder need not learn them. Reference: `neill18`.
    """
    _checks.embeddings("rows", (decoded, rows))
    cosines = jnp.sum(jax.vmap(unit)(decoded) * jax.vmap(unit)(rows), axis=1)
    return (1 - cosines) ** 2


class Layer(NamedTuple):
    r"""The map $x \mapsto xW + b$, with the kernel $W$ and the bias $b$."""

    kernel: Float[Array, "k m"]
    bias: Float[Array, " m"]

    def __call__(self, x: Float[Array, "n k"]) -> Float[Array, "n m"]:
        """The layer, applied to rows."""
        return matmul(x, self.kernel) + self.bias[None, :]


class Training(NamedTuple):
    """Settings say how an autoencoder is trained; for how long is said by `epochs`."""

    batch: int = 128
    """How many words a step of Adam sees, or all, if there are fewer."""
    rate: Scalar = 1e-3
    """The first rate; that of step $t$ is $0.99^{t/50}$ of it, 4,975 full steps in all."""
    noise: float = 0.05
    """The share of entries set to 0: of each row `int(noise * k_j)`, drawn with replacement."""
    factors: Numbers | None = None
    """$f_j$ of the loss; None means all 1."""
    activation: Activation = jax.nn.relu
    r"""$\phi$, entry by entry. A new function compiles anew."""
    normalise: bool = True
    """Whether rows get length 1, those of the sources and those of the meta-embedding."""
    cost: Callable[[Array, Array], Array] = squared_error
    """Of each row and what is decoded for it. A new function compiles anew."""


USUAL = Training()


class _Wiring(NamedTuple):
    """Static fields say what a method does with its layers."""

    activation: Activation
    normalise: bool
    decoupled: bool = False
    k: int | None = None  # units of codes that are added up; None: as many as the source has
    cost: Callable[[Array, Array], Array] = squared_error

    def shapes(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """Kernels have these shapes, those of all encoders first, then those of all decoders."""
        codes = [self.k or size for size in sizes]
        decoded = codes if self.decoupled else [self.k or sum(sizes)] * len(sizes)
        return [*zip(sizes, codes, strict=True), *zip(decoded, sizes, strict=True)]

    def join(self, codes: Sequence[Array]) -> Array:
        """Codes of the sources become the meta-embedding."""
        meta = sum(codes[1:], codes[0]) if self.k else jnp.concatenate(codes, axis=1)
        if not self.normalise:
            return meta
        # The floor keeps the gradient finite where no unit is active: there the row is 0.
        squares = jnp.sum(meta**2, axis=1, keepdims=True)
        return meta / jnp.sqrt(jnp.maximum(squares, 1e-12))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Autoencoder:
    """Trained layers, one pair for each source, are a pytree of arrays, which knows its method."""

    encoders: tuple[Layer, ...]
    decoders: tuple[Layer, ...]
    wiring: _Wiring = dataclasses.field(metadata={"static": True})

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of each source."""
        return tuple(layer.kernel.shape[0] for layer in self.encoders)

    @property
    def width(self) -> int:
        """Columns of the result."""
        codes = [layer.kernel.shape[1] for layer in self.encoders]
        return codes[0] if self.wiring.k else sum(codes)


class Autoencoded(NamedTuple):
    """A meta-embedding stands beside the parameters that make it."""

    embedding: Float[Array, "n m"]
    """One row for each word, of length 1; all zeros, if no unit is active."""
    loss_history: Float[Array, " epochs"]
    """The mean loss of the batches of each epoch, noise included."""
    parameters: Autoencoder
    """Those after the epoch with the lowest loss, for `autoencoded_rows`."""

    @property
    def best_epoch(self) -> int:
        """The epoch, from 0, after which the parameters were kept."""
        return int(np.argmin(self.loss_history))


def decoupled_autoencoder(
    sources: Sources,
    *,
    key: Key[Array, ""],
    present: Present | None = None,
    epochs: int = 200,
    coupling: Scalar = 1.0,
    training: Training = USUAL,
    progress: Progress | None = None,
) -> Autoencoded:
    r"""DAEME: every source has an autoencoder of its own, and codes are drawn together.

    The meta-embedding is $[h_1 \ldots h_N]$, rows of length 1. `key` draws weights, order and
    noise. Batches are shuffled for each of the `epochs`, and words that fill none are left out of
    it. The parameters after the epoch with the lowest mean loss are kept. A word that a source
    lacks enters as zeros, and its errors and couplings with that source do not count. `coupling`
    is $c$; sources have one dtype.

    Cost of an epoch: $4n$ flops for each weight of the encoders, $6n$ of the decoders.
    Reference: `bao18`.

    >>> import jax
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> sources = tuple(jax.random.normal(key, (50, 4)) for key in keys)
    >>> small = Training(batch=10)
    >>> result = decoupled_autoencoder(sources, key=keys[0], epochs=20, training=small)
    >>> result.embedding.shape, bool(result.loss_history[-1] < result.loss_history[0])
    ((50, 8), True)
    """
    return _train(sources, key, present, epochs, training, progress, coupling, decoupled=True)


def concatenated_autoencoder(
    sources: Sources,
    *,
    key: Key[Array, ""],
    present: Present | None = None,
    epochs: int = 200,
    training: Training = USUAL,
    progress: Progress | None = None,
) -> Autoencoded:
    """CAEME: every source is decoded from the concatenation of all codes, the meta-embedding.

    All else is as in `decoupled_autoencoder`. Reference: `bao18`.
    """
    return _train(sources, key, present, epochs, training, progress)


def averaged_autoencoder(
    sources: Sources,
    *,
    key: Key[Array, ""],
    k: int = 300,
    present: Present | None = None,
    epochs: int = 200,
    training: Training = USUAL,
    progress: Progress | None = None,
) -> Autoencoded:
    r"""AAEME: codes have `k` units each; their sum is the meta-embedding, and decodes every source.

    Linear, without noise and lengths, it finds what PCA finds in
    $[s_1/\sqrt{k_1} \ldots s_N/\sqrt{k_N}]$. All else is as in `decoupled_autoencoder`.
    Reference: `bao18`.
    """
    _checks.integer("k", k, least=1)
    return _train(sources, key, present, epochs, training, progress, k=k)


@_checks.checked()
def autoencoded_rows(
    parameters: Autoencoder, sources: Sources, *, present: Present | None = None
) -> Float[Array, "n m"]:
    """The meta-embedding of rows, seen in training or not, by trained `parameters`."""
    _check(sources, present)
    check_widths(parameters.widths, sources)
    inputs = _inputs(sources, present, parameters.wiring.normalise)
    return parameters.wiring.join(_codes(parameters, inputs))


def _check(sources: Any, present: Any) -> tuple[int, ...]:
    """Check the arrays, and return their widths."""
    _checks.embeddings("sources", sources)
    dtype = sources[0].dtype
    for j, source in enumerate(sources):
        if source.dtype != dtype:
            got, expected = f"dtype {source.dtype}", f"{dtype}, as of sources[0]"
            _checks.fail(f"sources[{j}]", got, expected, "cast it with .astype", TypeError)
    if present is not None:
        _checks.present(present, sources[0].shape[0], len(sources))
    return tuple(source.shape[1] for source in sources)


def _inputs(sources: Sequence[Array], present: Array | None, normalise: bool) -> tuple[Array, ...]:
    """Rows, zeros for words that are not there, of length 1 if so wished."""
    sources = known(sources, present)
    return tuple(map(jax.vmap(unit), sources)) if normalise else sources


def _codes(parameters: Autoencoder, inputs: Sequence[Array]) -> list[Array]:
    phi = parameters.wiring.activation
    return [phi(layer(x)) for layer, x in zip(parameters.encoders, inputs, strict=True)]


def _loss(parameters, noisy, clean, present, factors, coupling):
    wiring, codes = parameters.wiring, _codes(parameters, noisy)
    decoded = codes if wiring.decoupled else [wiring.join(codes)] * len(codes)

    def mean(costs, rows):
        total = jnp.sum(jnp.where(rows, costs, 0))
        return total / jnp.maximum(jnp.sum(rows, dtype=costs.dtype), 1)

    total = jnp.zeros((), clean[0].dtype)
    for j, layer in enumerate(parameters.decoders):
        total += factors[j] * mean(wiring.cost(layer(decoded[j]), clean[j]), present[:, j])
    for i, j in itertools.combinations(range(len(codes)) if wiring.decoupled else (), 2):
        shared = min(codes[i].shape[1], codes[j].shape[1])
        costs = squared_error(codes[i][:, :shared], codes[j][:, :shared])
        total += coupling * mean(costs, present[:, i] & present[:, j])
    return total


class _State(NamedTuple):
    parameters: Autoencoder
    adam: Any
    best: Autoencoder
    lowest: Array


def _train(sources, key, present, epochs, training, progress, coupling=0.0, **kind) -> Autoencoded:
    """Train the autoencoder of that `kind`, some fields of `_Wiring`."""
    sizes = _check(sources, present)
    batch, rate, noise, factors, activation, normalise, cost = training
    factors = (1.0,) * len(sizes) if factors is None else factors
    _checks.integer("epochs", epochs, least=1)
    _checks.integer("batch", batch, least=1)
    _checks.not_negative("rate", rate, "try 1e-3")
    _checks.count("factors", factors, len(sizes))
    for j, factor in enumerate(factors):
        _checks.scalar(f"factors[{j}]", factor)
    _checks.scalar("coupling", coupling)
    if not 0 <= noise <= 1:
        _checks.fail("noise", str(noise), "0 to 1", "pass the share of entries to mask")
    batch = min(batch, sources[0].shape[0])
    masked = tuple(int(noise * size) for size in sizes)
    wiring = _Wiring(activation, normalise, cost=cost, **kind)
    data, state = _start(key, tuple(sources), present, wiring=wiring)
    numbers = factors, coupling, rate
    history = []
    for epoch in range(1, epochs + 1):
        state, loss = _epoch(state, data, numbers, key, epoch, batch=batch, masked=masked)
        history.append(np.asarray(loss))
        (progress or silent)("autoencoder", epoch / epochs)
    embedding = autoencoded_rows(state.best, tuple(sources), present=present)
    # Unlike jnp.asarray, this compiles nothing for a new number of epochs.
    return Autoencoded(embedding, jax.device_put(np.stack(history)), state.best)


@jax.jit(static_argnames="wiring")
def _start(key, sources, present, *, wiring):
    """Inputs side by side, who has which word, and the state before the first step."""
    inputs = _inputs(sources, present, wiring.normalise)
    if present is None:
        present = jnp.ones((inputs[0].shape[0], len(inputs)), bool)
    dtype = inputs[0].dtype
    shapes = wiring.shapes([x.shape[1] for x in inputs])
    sizes = [math.prod(shape) for shape in shapes]
    # One draw for all kernels: every draw takes long to compile.
    drawn = jax.random.uniform(jax.random.fold_in(key, 0), (sum(sizes),), dtype, -1, 1)
    layers = []
    for x, shape in zip(jnp.split(drawn, np.cumsum(sizes)[:-1]), shapes, strict=True):
        limit = math.sqrt(6 / sum(shape))  # Glorot's
        layers.append(Layer(limit * x.reshape(shape), jnp.zeros(shape[1], dtype)))
    parameters = Autoencoder(tuple(layers[: len(inputs)]), tuple(layers[len(inputs) :]), wiring)
    best = jax.tree.map(jnp.zeros_like, parameters)
    infinite = jnp.full((), jnp.inf, dtype)
    state = _State(parameters, _adam(infinite).init(parameters), best, infinite)
    return (jnp.concatenate(inputs, axis=1), present), state


@jax.jit(static_argnames=("batch", "masked"), donate_argnames="state")
def _epoch(state, data, numbers, key, epoch, *, batch, masked):
    """Pass over the words once; return the state, and the mean loss of the batches."""
    inputs, present = data
    factors, coupling, rate = jax.tree.map(lambda x: jnp.asarray(x, inputs.dtype), numbers)
    optimiser = _adam(rate)
    sizes = [layer.kernel.shape[0] for layer in state.parameters.encoders]
    order_key, noise_key = jax.random.split(jax.random.fold_in(key, epoch))
    order = _batches(order_key, present.shape[0], batch)
    masks = _masks(noise_key, order.shape, sizes, masked)

    def step(carry, drawn):
        (parameters, adam), (rows, columns) = carry, drawn
        clean = inputs[rows]
        noisy = clean.at[jnp.arange(batch)[:, None], columns].set(0)
        noisy, clean = (jnp.split(x, np.cumsum(sizes)[:-1], axis=1) for x in (noisy, clean))
        loss, gradient = jax.value_and_grad(_loss)(
            parameters, noisy, clean, present[rows], factors, coupling
        )
        with jax.numpy_dtype_promotion("standard"):  # optax relies on it
            change, adam = optimiser.update(gradient, adam)
            parameters = optax.apply_updates(parameters, change)
        return (parameters, adam), loss

    (parameters, adam), losses = lax.scan(step, (state.parameters, state.adam), (order, masks))
    loss = jnp.mean(losses)
    better = ~(loss >= state.lowest)  # NaN is kept: it must show
    best = jax.tree.map(lambda new, old: jnp.where(better, new, old), parameters, state.best)
    return _State(parameters, adam, best, jnp.where(better, loss, state.lowest)), loss


def _adam(rate: Array) -> optax.GradientTransformation:
    # The schedule of optax would count in float32.
    return optax.adam(lambda step: rate * 0.99 ** (step.astype(rate.dtype) / 50))


def _batches(key: Array, n: int, batch: int) -> Array:
    """Draw a random order of the words, a row for each batch; some may fill none."""
    return jax.random.permutation(key, n)[: n // batch * batch].reshape(-1, batch)


def _masks(key, shape: Sequence[int], sizes: Sequence[int], masked: Sequence[int]) -> Array:
    """Draw columns to be set to 0 in each row of each batch, `masked[j]` of source j."""
    ends = np.repeat(np.cumsum(sizes), masked)[None, None, :]
    starts = ends - np.repeat(sizes, masked)[None, None, :]
    return jax.random.randint(key, (*shape, sum(masked)), starts, ends)
