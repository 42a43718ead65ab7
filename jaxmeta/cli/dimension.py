"""`jaxmeta dimension` says how many dimensions to keep, of files or of what texts make."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import jaxmeta as jm
from jaxmeta.cli.shared import (
    AsJson,
    Force,
    MethodName,
    Seed,
    method_named,
    outputs,
    progress,
    put,
    put_json,
    read_aligned,
    refuse,
    table,
)
from jaxmeta.cli.train import Alpha, Cache, Lines, Lower, Signals, Size, Window, recipes_of

__all__ = ["dimension"]

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)
HALVES = "spiked"  # a rule that needs no more than sigma from halves, and few eigenvectors


def dimension(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            exists=True,
            show_default=False,
            help="Files of vectors, or a text if there is --signal.",
        ),
    ],
    method: MethodName = "default",
    signal: Signals = [],  # noqa: B006 - typer copies it
    size: Size = 20_000,
    window: Window = 5,
    alpha: Alpha = 0.5,
    lower: Lower = False,
    lines: Lines = False,
    cache: Cache = None,
    seed: Seed = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="X.png|X.pdf|X.svg", help="Draw the curve.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """How many dimensions to keep: of files, by what fewer cost; of a text, by each rule.

    Files have no noise that is known, so the curve is by how much k dimensions of their combination
    change inner products. Of a text, with --signal, it is the PIP loss that is expected at k.
    """
    outputs((plot,), files, force)
    if not signal:
        _of_files(files, method_named(method), seed, plot, as_json)
        return
    if len(files) > 1 or len(signal) > 1 or "," in signal[0]:
        got = f"{len(files)} texts and {', '.join(signal)}"
        refuse("--signal", got, "one text and one signal", "run it for each")
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {
            "size": size or None, "window": window, "alpha": alpha, "seed": seed,
            "cache": cache or folder, "progress": progress(),
        }  # fmt: skip
        recipes = recipes_of(files, signal, lower, lines)
        (halves,) = jm.build_sources(recipes, rule=HALVES, **options)
        (nested,) = jm.build_sources(recipes, rule=jm.text.EQUALISED, **options)
    _of_text(halves, nested, plot, as_json)


def _of_files(files: Sequence[Path], name: str, seed: int, plot: Any, as_json: bool) -> None:
    import jax

    together = read_aligned(files, "intersection")
    settings = jm.Settings(k=0.0, key=jax.random.key(seed), progress=progress())
    plan = jm.fit(name, together, settings)
    losses = jax.device_get(plan.losses)
    fewest = {share: plan.fewest(share) for share in SHARES}
    rank = float(jm.noise.effective_rank(plan.values))
    if plot:
        marks = {f"{share:.0%}": k for share, k in fewest.items()}
        title = f"What fewer dimensions cost: {name} of {len(files)} file{'s'[: len(files) > 1]}"
        ylabel = "change of the PIP matrix"
        jm.plot.plot_curves({name: losses[1:]}, marks, plot, title=title, ylabel=ylabel)
    if as_json:
        put_json({
            "method": name,
            "words": len(together.words),
            "dimensions": len(losses) - 1,
            "effective_rank": rank,
            "fewest": [{"share": share, "k": k} for share, k in fewest.items()],
            "curve": losses,
            "plot": plot,
        })  # fmt: skip
        return
    size = f"{len(together.words):,} words, {len(losses) - 1:,} dimensions"
    put(f"{name}: {size}, effective rank {rank:.1f}")
    put()
    table(
        ("inner products may change by", "k"),
        [(f"{share:.0%}", f"{k:,}") for share, k in fewest.items()],
    )
    _drawn(plot)


def _of_text(halves: Any, nested: Any, plot: Any, as_json: bool) -> None:
    import jax
    import jax.numpy as jnp

    values, alpha = jnp.asarray(halves.eigenvalues, jnp.result_type(float)), halves.alpha
    rules = {name: each for name, each in jm.RULES.items() if name != "rie" or alpha == 0.5}
    found = {name: int(each(values, halves.sigma, alpha)) for name, each in rules.items()}
    found[jm.text.EQUALISED] = nested.k
    expected = jm.pip_curve(nested.ideal, nested.spectrum, alpha=alpha)
    curves = {
        "expected, by the estimated ideal": expected,
        "the paper's recipe": jm.dimension.paper_curve(
            jnp.abs(values), sigma=halves.sigma, n=len(values), alpha=alpha
        ),
    }
    curves = jax.device_get(curves)
    if plot:
        title = f"{nested.name}: PIP loss against k, and what each rule chooses"
        jm.plot.plot_curves(curves, found, plot, title=title, ylabel="PIP loss", xscale="log")
    sigmas = {"halves": halves.sigma, "nested": nested.sigma}
    if as_json:
        told = {"signal": nested.name, "words": len(values), "alpha": alpha, "sigma": sigmas}
        put_json(told | {"k": found, "curves": curves, "plot": plot})
        return
    put(f"{nested.name}: {len(values):,} words, {nested.rank:,} values above the noise")
    put(f"sigma {sigmas['halves']:.3g} by halves, {sigmas['nested']:.3g} by nested parts")
    put()
    table(("rule", "k"), [(name, f"{k:,}") for name, k in found.items()])
    put()
    put("Where most pairs of words are rare, trust equalised: the others take sigma from halves.")
    _drawn(plot)


def _drawn(plot: Path | None) -> None:
    if plot:
        put(f"plot: {plot}")
