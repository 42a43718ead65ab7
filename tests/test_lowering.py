"""Every program of the library exists for NVIDIA and AMD GPUs and for TPUs, without the device.

None calls back to the host, and programs for 32-bit numbers compute with no 64-bit ones, which
accelerators have no or few units for. Running them takes the device: `python -m
benchmarks.accelerator`.
"""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from api_promises import floats, generator
from helpers import IN_64_BIT, cast
from jax import export
from jax.experimental import io_callback
from test_table import TABLE

PLATFORMS = ("cuda", "rocm", "tpu")
# A number of Python's is a 64-bit constant until it meets an array, and is converted there: no more
# than that. JAX's own SVD for a TPU has 64-bit tables, so this is looked for in the others.
WIDE = re.compile(r"\dxf64>|= stablehlo\.(?!constant|convert)\w+ .*f64")
OF_OTHERS = {"simplex": "optax.projections", "bulk_noise_std": "jnp.median, in scalars"}


def lowered(function, arguments, platforms=PLATFORMS):
    """The program for all of these platforms, as text, and what comes out of it."""
    exported = export.export(jax.jit(function), platforms=platforms)(*arguments)
    assert exported.platforms == platforms
    # Places in the source have names of their own.
    lines = (x for x in exported.mlir_module().splitlines() if not x.startswith("#loc"))
    return "\n".join(lines), exported.out_avals


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE)
def test_lowers_for_accelerators(name):
    """For 32-bit numbers; in the 64-bit leg JAX could make 64-bit ones of them."""
    row = TABLE[name]
    arguments = cast(row.generic(generator()), jnp.float32)
    text, out = lowered(row.call, arguments, PLATFORMS[:2] if IN_64_BIT else PLATFORMS)
    assert {x.dtype for x in floats(out)} == (set() if row.discrete else {jnp.dtype("float32")})
    if IN_64_BIT:
        assert bool(WIDE.search(text)) == (name.split(",")[0] in OF_OTHERS)


@pytest.mark.parametrize("function", [jax.pure_callback, io_callback])
def test_callbacks_do_not_lower(function):
    """So none of the above has one."""
    x = jnp.ones(3, jnp.float32)
    with pytest.raises(NotImplementedError, match="callbacks"):
        lowered(lambda x: function(np.sin, x, x), (x,), ("cpu",))


@pytest.mark.parametrize("shape", [(3,), ()])
def test_wide_numbers_are_seen(shape):
    """An array, or arithmetic with a scalar, in JAX's default precision."""
    x = jnp.ones(3, jnp.float32)
    text, _ = lowered(lambda x: x * jnp.sqrt(jnp.full(shape, 2.0)).astype(x.dtype), (x,))
    assert bool(WIDE.search(text)) == IN_64_BIT
