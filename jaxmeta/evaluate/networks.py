r"""Networks with one hidden layer are trained here, several settings side by side in one program.

$$h = \max(xW + b, 0) \odot m, \qquad p = \mathrm{softmax}(hA + a)$$

has $u$ units: those beyond them are masked, so that the number of units, like the rate, is an
argument and not a shape. In training $m$ also drops units by chance, and scales the others up.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Key

from jaxmeta import _checks
from jaxmeta.linalg import matmul
from jaxmeta.progress import Progress, silent

__all__ = ["FittedNetwork", "Network", "fit_network", "network_scores"]


class Network(NamedTuple):
    """A network is its two layers; entries of units that it does not have are 0."""

    kernel: Float[Array, "k units"]
    bias: Float[Array, " units"]
    output: Float[Array, "units c"]
    output_bias: Float[Array, " c"]


class FittedNetwork(NamedTuple):
    """The network that is best on held-out rows stands beside its settings."""

    network: Network
    units: int
    rate: float
    epoch: int
    """After which it was kept, from 1."""
    right: Int[np.ndarray, " settings"]
    """How many held-out rows each pair of units and rate had right in its best epoch."""


class _State(NamedTuple):
    """Fields have an entry for each setting."""

    networks: Network
    rms: Any
    best: Network
    right: Int[Array, " settings"]
    epoch: Int[Array, " settings"]


def fit_network(
    features: Float[Array, "n k"] | Float[np.ndarray, "n k"],
    labels: Int[Array, " n"] | Int[np.ndarray, " n"],
    held_out: Bool[np.ndarray, " n"],
    *,
    key: Key[Array, ""],
    units: Sequence[int] = (50, 100),
    rates: Sequence[float] = (3e-4, 1e-3, 3e-3),
    epochs: int = 20,
    batch: int = 64,
    dropout: float = 0.5,
    progress: Progress | None = None,
) -> FittedNetwork:
    r"""Train a network for every pair of `units` and `rates`, and keep the best on held-out rows.

    RMSProp, with a decay of .9, minimises the mean cross entropy of batches of the other rows, in
    `epochs` passes; rows that fill no batch are left out of a pass. The best is that with most of
    the `held_out` rows right after some epoch; of equals the earlier epoch, and the first setting.
    `key` draws weights, batches and dropped units, the same ones for all settings. Features are
    taken as they are: a mean square of 1 suits the rates.

    Cost of an epoch: $6nkm$ flops for each pair, $m$ being the largest number of units.
    References: `srivastava14`, `tieleman12`.

    >>> import jax
    >>> x, held_out = np.repeat([[-1.0], [1.0]], 40, axis=0), np.arange(80) % 4 == 0
    >>> found = fit_network(x, np.repeat([0, 1], 40), held_out, key=jax.random.key(0))
    >>> int(found.right.max())
    20
    """
    for name, numbers in {"units": units, "rates": rates}.items():
        if not len(numbers):
            _checks.fail(name, "none", "one or more", "leave it out")
    for number in units:
        _checks.integer("units", number, least=1)
    for rate in rates:
        _checks.positive("rates", rate, "try 1e-3")
    _checks.integer("epochs", epochs, least=1)
    _checks.integer("batch", batch, least=1)
    if not 0 <= dropout < 1:
        _checks.fail("dropout", str(dropout), "0 or more and less than 1", "try 0.5")
    if held_out.all() or not held_out.any():
        got = f"{int(held_out.sum())} of {len(held_out)} rows"
        _checks.fail("held_out", got, "some and not all", "train on some, and choose by others")
    given = np.asarray(features), np.asarray(labels, np.int32)
    data = tuple(jax.device_put(x[rows]) for rows in (~held_out, held_out) for x in given)
    pairs = [(int(number), float(rate)) for number in units for rate in rates]
    settings = tuple(np.array(column, given[0].dtype) for column in zip(*pairs, strict=True))
    shape = given[0].shape[1], max(units), int(given[1].max()) + 1
    state = _start(key, settings[0], shape=shape)
    batch = min(batch, len(data[0]))
    for epoch in range(1, epochs + 1):
        state = _epoch(state, data, settings, key, epoch, given[0].dtype.type(dropout), batch=batch)
        (progress or silent)("network", epoch / epochs)
    right = np.asarray(state.right)
    first = int(np.argmax(right))
    best = jax.tree.map(lambda x: x[first], state.best)
    return FittedNetwork(best, *pairs[first], int(state.epoch[first]), right)


@jax.jit
def network_scores(
    network: Network, features: Float[Array, "n k"] | Float[np.ndarray, "n k"]
) -> Float[Array, "n c"]:
    """Return scores of all classes for each row: the softmax of these are probabilities."""
    hidden = jax.nn.relu(matmul(features, network.kernel) + network.bias[None, :])
    return matmul(hidden, network.output) + network.output_bias[None, :]


@jax.jit(static_argnames="shape")
def _start(key, units, *, shape):
    """The state before the first step; settings with fewer units have the first of the others."""
    k, most, classes = shape
    dtype = units.dtype
    # One draw for both kernels: every draw takes long to compile.
    drawn = jax.random.normal(jax.random.fold_in(key, 0), (k + classes, most), dtype)
    there = _there(units, most)
    kernel = math.sqrt(2 / k) * drawn[None, :k] * there[:, None, :]
    output = drawn[None, k:] * there[:, None, :] / jnp.sqrt(units)[:, None, None]
    zeros = (jnp.zeros((len(units), size), dtype) for size in (most, classes))
    bias, output_bias = zeros
    networks = Network(kernel, bias, jnp.swapaxes(output, 1, 2), output_bias)
    none = jnp.full(len(units), -1, jnp.int32)
    return _State(networks, _rms().init(networks), networks, none, none)


@jax.jit(static_argnames="batch")
def _epoch(state, data, settings, key, epoch, dropout, *, batch):
    """Pass over the rows once, and count what is right of those that are held out."""
    x, labels, held, wanted = data
    units, rates = settings
    most = state.networks.bias.shape[1]
    there = _there(units, most)
    order_key, drop_key = jax.random.split(jax.random.fold_in(key, epoch))
    order = jax.random.permutation(order_key, len(x))[: len(x) // batch * batch]
    order = order.reshape(-1, batch)
    losses = jax.vmap(jax.grad(_loss), in_axes=(0, None, None, None, 0))

    def step(carry, here):
        networks, rms = carry
        rows, number = here
        chances = jax.random.uniform(jax.random.fold_in(drop_key, number), (batch, most), x.dtype)
        kept = (chances >= dropout).astype(x.dtype) / (1 - dropout)
        gradient = losses(networks, x[rows], labels[rows], kept, there)
        with jax.numpy_dtype_promotion("standard"):  # optax relies on it
            change, rms = _rms().update(gradient, rms)
        networks = jax.tree.map(lambda w, c: w - _along(rates, c) * c, networks, change)
        return (networks, rms), None

    start = state.networks, state.rms
    (networks, rms), _ = lax.scan(step, start, (order, jnp.arange(len(order))))
    found = jnp.argmax(jax.vmap(network_scores, in_axes=(0, None))(networks, held), axis=2)
    right = jnp.sum(found.astype(wanted.dtype) == wanted[None, :], axis=1, dtype=jnp.int32)
    better = right > state.right
    best = jax.tree.map(lambda new, old: _where(better, new, old), networks, state.best)
    right = jnp.maximum(right, state.right)
    kept_at = jnp.where(better, jnp.asarray(epoch, jnp.int32), state.epoch)
    return _State(networks, rms, best, right, kept_at)


def _loss(network, x, labels, kept, there):
    """The mean cross entropy of a batch, with the units that are kept."""
    hidden = jax.nn.relu(matmul(x, network.kernel) + network.bias[None, :])
    scores = matmul(hidden * kept * there[None, :], network.output) + network.output_bias[None, :]
    chosen = jnp.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(scores, axis=1) - chosen)


def _there(units: Array, most: int) -> Array:
    """Tell, as 1 and 0, which of the units each setting has."""
    return (jnp.arange(most, dtype=units.dtype)[None, :] < units[:, None]).astype(units.dtype)


def _rms() -> optax.GradientTransformation:
    return optax.scale_by_rms(decay=0.9)


def _along(numbers: Array, like: Array) -> Array:
    """Numbers of settings, as they broadcast against something that has settings first."""
    return numbers.reshape(-1, *(1,) * (like.ndim - 1))


def _where(better: Array, new: Array, old: Array) -> Array:
    return jnp.where(_along(better, new), new, old)
