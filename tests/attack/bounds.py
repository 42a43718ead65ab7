"""Instances of the bound chain, by random search and by gradient ascent towards a violation.

Loss <= tight <= split <= telescoped, the loss from n x n matrices, in 64 bit. Half of the instances
are drawn: frames that are blocks of the ideal, other blocks, anything or blends of these, spectra
that are flat, steep or end in zeros. The other half are on the way of gradient ascent on the
relative excess of each link in turn, from such instances on.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeta import Spectrum, bound_terms

# Words, dimensions of each source, of the ideal: as many as the sources have, more, or fewer.
LAYOUTS = ((8, (2,), 5), (8, (3, 2), 5), (9, (2, 2), 2), (10, (3, 2, 1), 8))
LINKS = ("loss <= tight", "tight <= split", "split <= telescoped")
BATCH, STEPS = 2000, 20
SLACK = 1e-12  # of the size of what is compared


def draw(layout: Any, key: jax.Array) -> Any:
    """Numbers that make an instance, all of them free to move."""
    n, sizes, d = layout
    keys = iter(jax.random.split(key, 7 + 6 * len(sizes)))
    normal = partial(jax.random.normal, dtype=float)

    def spectrum(size: int) -> dict[str, jax.Array]:
        steepness = jax.random.choice(next(keys), jnp.array([0.0, 0.5, 1, 4, 12]))
        cut = jax.random.randint(next(keys), (), 1, size + 1)
        there = (jnp.arange(size) < cut) | jax.random.bernoulli(next(keys), 0.7)
        return {"values": jnp.abs(normal(next(keys), (size,))) ** steepness, "there": there * 1.0}

    ideal = spectrum(d)
    sources = []
    for size in sizes:
        blend = jax.random.dirichlet(next(keys), jnp.full(3, 0.1))  # mostly one of them alone
        frame, c = jax.random.split(next(keys))
        sources.append({
            "frame": normal(frame, (n, size)), "blend": blend, "c": normal(c, (size,)),
            **spectrum_of_source(next(keys), size),
        })  # fmt: skip
    alpha = jax.random.choice(next(keys), jnp.array([0.25, 0.5, 0.5, 1.0, 2.0]))
    return {"frame": normal(next(keys), (n, n)), "alpha": alpha, "sources": sources, **ideal}


def spectrum_of_source(key: jax.Array, size: int) -> dict[str, jax.Array]:
    """Values of a source, some of them 0."""
    first, second = jax.random.split(key)
    values = jnp.abs(jax.random.normal(first, (size,), float)) ** 2
    return {"values": values, "there": jax.random.bernoulli(second, 0.9, (size,)) * 1.0}


def power(values: jax.Array, exponent: jax.Array) -> jax.Array:
    """Powers, with 0 for 0."""
    return jnp.where(values > 0, jnp.where(values > 0, values, 1) ** exponent, 0)


def chain(layout: Any, x: Any) -> tuple[jax.Array, jax.Array]:
    """Loss, tight, split and telescoped bound, and the size of what the loss compares."""
    n, sizes, d = layout
    u = jnp.linalg.qr(x["frame"])[0]
    alpha = jnp.abs(x["alpha"])
    ideal = jnp.sort(jnp.abs(x["values"] * x["there"]))[::-1]
    spectra, weights, meta, start = [], [], jnp.zeros((n, n)), 0
    for size, source in zip(sizes, x["sources"], strict=True):
        own, first = u[:, start : start + size], u[:, :size]
        blend = source["blend"]
        frame = jnp.linalg.qr(blend[0] * own + blend[1] * first + blend[2] * source["frame"])[0]
        values = jnp.sort(jnp.abs(source["values"] * source["there"]))[::-1]
        spectra.append(Spectrum(frame, values))
        weights.append(source["c"])
        meta += (frame * (source["c"] ** 2 * power(values, 2 * alpha))) @ frame.T
        start += size
    whole = (u[:, :d] * power(ideal, 2 * alpha)) @ u[:, :d].T
    terms = bound_terms(Spectrum(u[:, :d], ideal), spectra, weights, alpha=alpha)
    difference = whole - meta
    loss = jnp.sqrt(jnp.maximum(jnp.sum(difference**2), 1e-300))
    size = jnp.sqrt(jnp.sum(whole**2)) + jnp.sqrt(jnp.sum(meta**2))
    return jnp.stack([loss, terms.tight, terms.split, terms.telescoped]), size


def excess(layout: Any, x: Any) -> jax.Array:
    """How far each link is from holding, relative to the size; above 0 it does not."""
    sides, size = chain(layout, x)
    return (sides[:-1] - sides[1:]) / jnp.where(size == 0, 1, size)


@partial(jax.jit, static_argnums=0)
def search(layout: Any, key: jax.Array) -> jax.Array:
    """The excess of a batch that is drawn."""
    return jax.vmap(lambda k: excess(layout, draw(layout, k)))(jax.random.split(key, BATCH))


@partial(jax.jit, static_argnums=0)
def ascend(layout: Any, link: jax.Array, key: jax.Array) -> jax.Array:
    """The excess at each step of ascent on one link, from a batch that is drawn."""

    def height(x: Any) -> tuple[jax.Array, jax.Array]:
        found = excess(layout, x)
        return found[link], found

    def climb(key: jax.Array) -> jax.Array:
        def step(x: Any, size: jax.Array) -> tuple[Any, jax.Array]:
            slope, found = jax.grad(height, has_aux=True)(x)
            slope = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0), slope)
            length = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(slope)))
            move = size / jnp.where(length == 0, 1, length)
            return jax.tree.map(lambda v, g: v + move * g, x, slope), found

        return jax.lax.scan(step, draw(layout, key), 0.3 * 0.8 ** jnp.arange(STEPS, dtype=float))[1]

    return jax.vmap(climb)(jax.random.split(key, BATCH // STEPS)).reshape(-1, len(LINKS))


def run(number: int, seed: int) -> dict[str, Any]:
    """Rows of what was tried, and what was found to be wrong."""
    rows, faults = [], []
    batches = -(-number // (2 * BATCH * len(LAYOUTS)))
    with jax.enable_x64(True):
        for at, layout in enumerate(LAYOUTS):
            for kind in ("drawn", "on the way up"):
                worst, tried = np.full(len(LINKS), -np.inf), 0
                for batch in range(batches):
                    key = jax.random.fold_in(jax.random.key(seed), 2 * (len(LAYOUTS) * batch + at))
                    if kind == "drawn":
                        found = np.asarray(search(layout, key))
                    else:
                        key = jax.random.fold_in(key, 1)
                        found = np.asarray(ascend(layout, batch % len(LINKS), key))
                    tried += len(found)
                    worst = np.maximum(worst, found.max(axis=0))
                    for i, link in np.argwhere(~(found <= SLACK)):
                        where = f"{layout}, {kind}, batch {batch}, instance {i}"
                        faults.append(f"{LINKS[link]} by {found[i, link]:.1e}: {where}")
                links = {link: f"{x:.0e}" for link, x in zip(LINKS, worst, strict=True)}
                rows.append({"n, sizes, d": str(layout), "instances": kind, "tried": tried} | links)
    return {"rows": rows, "faults": faults}
