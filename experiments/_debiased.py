"""How far estimated ideal values are from the ideal, by their size over the noise."""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

import jaxmeta
from experiments import _draws, _record
from jaxmeta.files import Cache

if TYPE_CHECKING:
    from experiments.weights_vs_oracle import Config

BINS = (1.0, 1.5, 2.0, 3.0, 6.0, np.inf)


@dataclass(frozen=True)
class DebiasedRow:
    """Relative errors of estimated ideal values between `low` and `high` times tau."""

    spectrum: str
    n: int
    low: float
    high: float
    count: int
    detected: float
    """Share of them that stand out from the noise; the others count as an error of 1."""
    detected_error: float
    """Mean over those alone (0 if there are none)."""
    mean_error: float
    worst_error: float
    predicted_deviation: float
    """Mean of the standard deviation that theory gives for isolated values."""
    usvt_error: float
    """Mean error of soft thresholding, the paper's estimate."""
    largest_bad: float
    """The largest ideal value, over tau, with an error of more than 2 %."""


def debiased(config: "Config", *, draws: Path) -> list[DebiasedRow]:
    """Errors of the debiased spectrum, for isolated ideal values and for the power laws."""
    n, sigma, spikes = config.n, config.sigma, config.spikes
    tau = sigma * n**0.5
    isolated = np.zeros(n)
    isolated[:spikes] = tau * np.geomspace(20, 1.1, spikes)
    kinds: dict[str, list[tuple[np.ndarray, np.ndarray]]] = defaultdict(list)
    for seed in config.all_seeds:

        def make(seed=seed) -> dict[str, np.ndarray]:
            return {"eigenvalues": _draws.noisy(isolated, sigma, np.random.default_rng(seed))[0]}

        settings = {"spikes": spikes, "n": n, "sigma": sigma, "seed": seed}
        found = Cache(draws).arrays("spikes", settings, make)["eigenvalues"]
        kinds[f"{spikes} isolated"].append((isolated, found))
        for spectrum in config.spectra:
            draw = config.draw(draws, spectrum, seed)
            kinds[spectrum.name].append((draw.ideal, draw.eigenvalues))
    rows = []
    for name, pairs in kinds.items():
        ideal = np.concatenate([x for x, _ in pairs])
        # No ideal value is negative, so the i-th largest noisy value belongs to the i-th of them.
        with jax.enable_x64(True):
            values = [jnp.maximum(jnp.asarray(np.sort(x)[::-1]), 0) for _, x in pairs]
            estimate, usvt = (
                np.concatenate([np.asarray(method(v, sigma=sigma, n=n)) for v in values])
                for method in (jaxmeta.debias, jaxmeta.usvt)
            )
        for low, high in itertools.pairwise(BINS):
            chosen = (ideal > low * tau) & (ideal <= high * tau)
            if not chosen.any():
                continue
            x = ideal[chosen] / tau
            error = np.abs(estimate[chosen] / ideal[chosen] - 1)
            seen = estimate[chosen] > 0
            rows.append(
                DebiasedRow(
                    spectrum=name,
                    n=n,
                    low=low,
                    high=high,
                    count=int(chosen.sum()),
                    detected=float(seen.mean()),
                    detected_error=float(error[seen].mean() if seen.any() else 0),
                    mean_error=float(error.mean()),
                    worst_error=float(error.max()),
                    predicted_deviation=float(np.mean(np.sqrt(2 / n / (x**2 - 1)))),
                    usvt_error=float(np.mean(np.abs(usvt[chosen] / ideal[chosen] - 1))),
                    largest_bad=float(x[error > 0.02].max(initial=0)),
                )
            )
    return rows


def print_table(errors: Sequence[DebiasedRow]) -> None:
    """All rows."""
    print("\nDebiased spectrum: relative error by x = ideal value / tau")
    _record.show(
        ("exponent/rank", "x", "values", "detected", "mean", "worst", "sd in theory", "USVT mean"),
        [
            (
                e.spectrum, f"{e.low:g} to {e.high:g}", f"{e.count}", f"{e.detected:.0%}",
                f"{e.mean_error:.2%}", f"{e.worst_error:.2%}", f"{e.predicted_deviation:.2%}",
                f"{e.usvt_error:.1%}",
            )
            for e in errors
        ],
    )  # fmt: skip


def print_targets(errors: Sequence[DebiasedRow]) -> None:
    """What was to be reached, and what was."""
    for (name,), own in _record.groups(errors, "spectrum"):
        count = sum(e.count for e in own)
        mean = sum(e.count * e.mean_error for e in own) / count
        worst = max(e.worst_error for e in own)
        seen = sum(e.count * e.detected for e in own)
        of_seen = sum(e.count * e.detected * e.detected_error for e in own) / max(seen, 1)
        print(
            f"  debiased spectrum, {name}, all {count} values above tau: mean error {mean:.2%}, "
            f"worst {worst:.2%} (target 2 %): {_record.verdict(mean, worst, 0.02)}\n"
            f"    the {seen:.0f} of them that came out above 2 tau: mean error {of_seen:.2%}; "
            f"all values above {max(e.largest_bad for e in own):.2f} tau are within 2 %"
        )
    print(
        "    (theory calls a value detectable if it exceeds tau, and gives the estimate of an "
        "isolated one, x tau, a relative deviation of sqrt(2/n)/sqrt(x^2 - 1): see the table)"
    )
