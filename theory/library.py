"""Instances as the library takes them, and what it says of many at once."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta

from .dense import Array
from .instances import Instance

BATCH = 64


class Bounds(NamedTuple):
    """Bias and the three forms of the bound, one entry per instance."""

    bias: Array
    telescoped: Array
    split: Array
    tight: Array


def spectra(instance: Instance) -> tuple[jaxmeta.Spectrum, tuple[jaxmeta.Spectrum, ...]]:
    """The ideal and the sources of an instance."""

    def spectrum(frame: Any, values: Any) -> jaxmeta.Spectrum:
        return jaxmeta.Spectrum(frame[:, : values.size], values)

    sources = zip(instance.q, instance.mu, strict=True)
    return spectrum(instance.u, instance.ideal), tuple(spectrum(q, mu) for q, mu in sources)


def bounds(instances: Sequence[Instance]) -> Bounds:
    """The library's bound terms for all instances."""

    def totals(*arguments, **exponents):
        terms = jaxmeta.bound_terms(*arguments, **exponents)
        return terms.bias, terms.telescoped, terms.split, terms.tight

    return Bounds(*_of_all(totals, instances))


def best_tight(instances: Sequence[Instance]) -> Array:
    """The library's tight bound in the best order of the sources."""

    def total(*arguments, **exponents):
        return (jaxmeta.bounds.best_order(*arguments, **exponents).tight,)

    return _of_all(total, instances)[0]


def _of_all(function: Callable[..., tuple], instances: Sequence[Instance]) -> Array:
    """Numbers of each instance, one column each: one compilation for each layout."""
    groups = defaultdict(list)
    for i, instance in enumerate(instances):
        groups[instance.layout].append(i)
    # Batches of one size, the last one filled up, so that a layout is compiled once and for all.
    batches = [
        members[i : i + BATCH] for members in groups.values() for i in range(0, len(members), BATCH)
    ]
    columns = []

    def one(ideal, sources, c, alpha, alphas):
        return function(ideal, sources, c, alpha=alpha, source_alphas=alphas)

    for members in batches:
        arguments = [
            (*spectra(x), tuple(x.c), np.float64(x.alpha), tuple(map(np.float64, x.alphas)))
            for x in (instances[i] for i in np.resize(members, BATCH))
        ]
        stacked = jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *arguments)
        columns.append(np.stack(jax.vmap(one)(*stacked))[:, : len(members)])
    found = np.concatenate(columns, axis=1)
    return found[:, np.argsort(np.concatenate(batches))]
