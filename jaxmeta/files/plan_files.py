"""Plans are saved and loaded: safetensors, with a header that people can read."""

import datetime
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeta import _checks
from jaxmeta._checks import fail
from jaxmeta._files import intact, write_whole
from jaxmeta.files import _safetensors
from jaxmeta.plans import PLANS, Plan

__all__ = ["load_plan", "plan_header", "save_plan", "write_plan"]

FORMAT, VERSION = "jaxmeta plan", 2
METHODS = (*PLANS, "exact", "AVG-metric")
RENAMED = {
    "UW, unit rows": "UW-unit",
    "SW, blocks": "SW-blocks",
    "DW, blocks": "DW-blocks",
    "SW as released": "SW-released",
    "DW as released": "DW-released",
    "DW as released in 2020": "DW-released-2020",
    "SW as released in 2021": "SW-released-2021",
    "DW as released in 2021": "DW-released-2021",
    "ideal strengths": "ideal-strengths",
    "estimated ideal": "estimated-ideal",
    "AVG, rotated": "AVG-rotated",
}
"""Names in files of version 1 to those of today."""
JOINS = ("concatenate", "sum", "mean")
KINDS: dict[Any, str] = {np.dtype(np.float32): "F32", np.dtype(np.float64): "F64"}
OPTIONAL = ("rows", "values", "lost")
FIELDS: dict[str, Any] = {
    "method": str,
    "unit": bool,
    "join": str,
    "names": list,
    "widths": list,
    "width": int,
    "dtype": str,
    "rows": int | None,
    "date": str,
    "versions": dict,
}
DAMAGED = "it is damaged or was changed: save the plan again"


def save_plan(path: str | Path, plan: Any, *, names: Sequence[str] = ()) -> None:
    """Write a plan to a .safetensors file, whole or not at all.

    Its header says in text what it is: the method, the `names` of the sources in their order and
    their widths, the dtype, how many rows it was fitted to, versions and the date. With names,
    `load_plan` can tell sources of another order.

    >>> import tempfile
    >>> plan = Plan(None, (jnp.ones(2), jnp.ones(3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_plan(f"{folder}/plan.safetensors", plan, names=("glove", "news"))
    ...     print(load_plan(f"{folder}/plan.safetensors", names=("glove", "news")).widths)
    (2, 3)
    """
    with write_whole(path) as part:
        write_plan(part, plan, names)


def write_plan(part: Path, plan: Any, names: Sequence[str] = ()) -> None:
    """Write a plan to what is to become a file."""
    if not isinstance(plan, Plan):
        do = "make one by a method of jaxmeta.plans.PLANS"
        fail("plan", f"a {type(plan).__name__}", "a plan of a linear method", do, TypeError)
    arrays = _arrays_of(plan)
    _check("plan", plan.method, plan.join, arrays, "fit it again")
    names = tuple(names)
    if names:
        _check_names(names)
        _checks.count("names", names, len(plan.maps))
    dtype = arrays["maps.0"].dtype
    header = {
        "format": FORMAT,
        "version": VERSION,
        "method": plan.method,
        "unit": plan.unit,
        "join": plan.join,
        "names": names,
        "widths": plan.widths,
        "width": plan.width,
        "dtype": str(dtype),
        "rows": None if plan.rows is None else int(plan.rows),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": {
            "jaxmeta": sys.modules["jaxmeta"].__version__,
            "jax": jax.__version__,
            "numpy": np.__version__,
        },
    }
    kind = KINDS[dtype]
    with part.open("wb") as file:
        shapes = {name: (kind, array.shape) for name, array in arrays.items()}
        _safetensors.write_header(file, shapes, {key: _text(x) for key, x in header.items()})
        for array in arrays.values():
            file.write(array.astype(dtype.newbyteorder("<"), "C", copy=False).tobytes())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _arrays_of(plan: Plan) -> dict[str, np.ndarray]:
    found = {f"maps.{j}": each for j, each in enumerate(plan.maps)}
    found |= {f"centres.{j}": each for j, each in enumerate(plan.centres or ())}
    found |= {name: each for name in OPTIONAL if (each := getattr(plan, name)) is not None}
    return {name: np.asarray(each) for name, each in found.items()}


def _check(where: str, method: str, join: str, arrays: dict[str, np.ndarray], do: str) -> None:
    """Raise unless these arrays are a plan."""

    def wrong(got: str, expected: str) -> NoReturn:
        fail(where, got, expected, do)

    if method not in METHODS:
        wrong(f"method {method!r}", f"one of {', '.join(map(repr, METHODS))}")
    if join not in JOINS:
        wrong(f"join {join!r}", f"one of {', '.join(map(repr, JOINS))}")
    count = sum(name.startswith("maps.") for name in arrays)
    maps, centres = ([f"{kind}.{j}" for j in range(count)] for kind in ("maps", "centres"))
    if not count or set(arrays) - {*OPTIONAL} not in ({*maps}, {*maps, *centres}):
        wrong(f"arrays {', '.join(arrays) or 'none'}", "maps, and centres of all or of none")
    dtypes = {array.dtype for array in arrays.values()}
    if len(dtypes) > 1 or not dtypes <= set(KINDS):
        wrong(f"dtypes {', '.join(map(str, dtypes))}", "float32 or float64 alone")
    ranks = {"maps": (1, 2), "centres": (1,), "rows": (0,), "values": (1,), "lost": (0,)}
    for name, array in arrays.items():
        if array.ndim not in ranks[name.partition(".")[0]] or 0 in array.shape:
            wrong(f"shape {array.shape} of {name}", "a vector, or a matrix for a map")
        if not np.isfinite(array).all():
            wrong(f"numbers in {name} that are not finite", "finite ones")
    for move, centre in zip(maps, centres, strict=True):
        if centre in arrays and arrays[centre].shape != arrays[move].shape[:1]:
            shapes = f"{arrays[centre].shape} and {arrays[move].shape}"
            wrong(f"shapes {shapes} of {centre} and {move}", "those of one source")
    widths = [arrays[name].shape[-1] for name in maps]
    if join != "concatenate" and len(set(widths)) > 1:
        wrong(f"maps to widths {widths}", f"one width for {join!r}")


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not isinstance(name, str):
            fail("names", repr(name), "strings", "pass one per source", TypeError)


def plan_header(path: str | Path) -> dict[str, Any]:
    """Read what a file says of its plan: method, names, widths, dtype, rows, versions, date."""
    path = Path(path)
    with path.open("rb") as file:
        return _header(path, _safetensors.read_header(path, file)[0])


def _header(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    do = "pass a file that save_plan wrote"
    if metadata.get("format") != FORMAT:
        fail(str(path), f"format {metadata.get('format')!r}", repr(FORMAT), do)
    if metadata.get("version") not in ("1", str(VERSION)):
        do = "load it with a newer jaxmeta, or fit the plan again"
        expected = f"1 to {VERSION}"
        fail(str(path), f"version {metadata.get('version')!r} of the format", expected, do)
    found = {}
    for name, kind in FIELDS.items():
        with intact(path, f"no {name} in its header", "what save_plan writes", DAMAGED):
            value = metadata[name] if kind is str else json.loads(metadata[name])
            if not isinstance(value, kind):
                raise TypeError(repr(value))
            if name == "names" and not all(isinstance(each, str) for each in value):
                raise TypeError("names that are no text")
        found[name] = value
    if metadata["version"] == "1":
        found["method"] = RENAMED.get(found["method"], found["method"])
    return found


def load_plan(path: str | Path, *, names: Sequence[str] | None = None) -> Plan:
    """Read a plan that `save_plan` wrote.

    With `names` a plan that was saved for others, or for these in another order, is refused. A
    damaged file is refused, and what is in no way a plan. Without JAX's 64 bits a plan of float64
    becomes one of float32.
    """
    path = Path(path)
    with path.open("rb") as file:
        metadata, tensors = _safetensors.read_header(path, file)
        header = _header(path, metadata)
        dtypes = {kind: dtype for dtype, kind in KINDS.items()}
        arrays = {}
        for name, (kind, shape, start, stop) in tensors.items():
            if kind not in dtypes:
                fail(str(path), f"dtype {kind} of {name}", "float32 or float64", DAMAGED)
            file.seek(start)
            dtype = dtypes[kind]
            with intact(path, f"no {name} of shape {shape}"):
                stored = np.frombuffer(file.read(stop - start), dtype.newbyteorder("<"))
                arrays[name] = stored.astype(dtype).reshape(shape)
    method, join, widths = header["method"], header["join"], header["widths"]
    _check(str(path), method, join, arrays, DAMAGED)
    found = [arrays[f"maps.{j}"].shape[0] for j in range(len(arrays)) if f"maps.{j}" in arrays]
    if widths != found or header["dtype"] != str(arrays["maps.0"].dtype):
        got = f"maps for widths {found}, of {arrays['maps.0'].dtype}"
        fail(str(path), got, f"{widths} and {header['dtype']}, as its header says", DAMAGED)
    if names is not None:
        _check_order(path, tuple(header["names"]), tuple(names))
    given = {name: jnp.asarray(array) for name, array in arrays.items()}
    count = range(len(widths))
    return Plan(
        tuple(given[f"centres.{j}"] for j in count) if "centres.0" in given else None,
        tuple(given[f"maps.{j}"] for j in count),
        rows=given.get("rows"),
        values=given.get("values"),
        lost=given.get("lost"),
        method=method,
        unit=header["unit"],
        join=join,
    )


def _check_order(path: Path, own: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Raise unless a plan is for sources of these names, in this order."""
    if own == names:
        return
    if not own:
        do = "save it with names=, or leave names out"
        fail(str(path), "a plan without names of sources", f"one for {', '.join(names)}", do)
    do = "pass the sources that the plan was fitted to"
    if sorted(own) == sorted(names):
        do = "pass them in that order"
    fail("names", ", ".join(names), f"{', '.join(own)}, those of {path}", do)
