"""What the pages say of noise, real counts and known ideals, by what is stored in results/."""

import math
from statistics import mean, median
from typing import Any

from experiments._quoted import NOTES, README, from_, one, rows, signed

COUNTS, CHOOSE, SIGNALS = "docs/counts.md", "docs/choose.md", "docs/signals.md"


# Known ideals.


def _over(rule: str, best: str) -> list[float]:
    """Loss of a rule over that of another, for each signal and size."""
    at = {(r["signal"], r["tokens"], r["rule"]): r["loss"] for r in rows("known_ideal/losses")}
    cells_of = dict.fromkeys((signal, tokens) for signal, tokens, _ in at)
    return [at[*cell, rule] / at[*cell, best] for cell in cells_of]


def _within(ratios: list[float]) -> str:
    """How far above 1 at most, rounded up."""
    return f"within {math.ceil(100 * max(ratios) - 100)} %"


@from_("results/known_ideal/rows.csv and losses.csv")
def _() -> str:
    least = min(r["ratio"] for r in rows("known_ideal/rows"))
    return (
        f"from halves down to {least:.2f} of the true noise while pairs are rare, and the loss at "
        f"the k of that rule up to {max(_over('ideal', 'best k')):.2f} times the best"
    )


@from_("results/known_ideal/losses.csv")
def _() -> str:
    return f"the same rule is {_within(_over('ideal, true sigma', 'best k'))} of it"


@from_("results/known_ideal/losses.csv")
def _() -> str:
    return f"({_within(_over('paper', 'best k'))} there)"


@from_("results/known_ideal/rows.csv and losses.csv")
def _() -> str:
    ratios = [r["nested_ratio"] for r in rows("known_ideal/rows")]
    return (
        f"is between {min(ratios):.2f} and {max(ratios):.2f} of the noise, and its k "
        f"{_within(_over('equalised', 'best k'))} of the best loss"
    )


@from_("results/known_ideal/losses.csv")
def _() -> str:
    k, weights = (_over("equalised, denoised", x) for x in ("best k", "best weights"))
    of_k, of_weights = (sum(x < 1 for x in found) for found in (k, weights))
    return (
        f"loses less than the best k in {of_k} of {len(k)} cells, and less than any weights of the "
        f"observed directions in {of_weights} (PMI and log counts"
    )


# The noise of real counts.


def _worst(kind: str, name: str, **values: Any) -> float:
    found = [r for r in rows("real_noise/rows") if (r["kind"], r["name"]) == (kind, name)]
    return max(r["loss"] for r in found if all(r[key] == x for key, x in values.items()))


@from_("results/real_noise/rows.csv", README, NOTES, COUNTS)
def _() -> str:
    ours, scalar = (_worst("k", name) for name in ("equalised", "rie, halves"))
    return (
        f"at most {ours:.3f} times the smallest, where the same strengths with the paper's sigma "
        f"come to {scalar:.2f}"
    )


@from_("results/real_noise/rows.csv")
def _() -> str:
    said = []
    for signal in ("PPMI", "log counts", "PMI - log 3"):
        found = [
            r["loss"]
            for r in rows("real_noise/rows")
            if (r["kind"], r["name"], r["signal"]) == ("weights", "equalised", signal)
        ]
        said.append(f"{mean(found):.3f} for {signal} ({max(found):.3f} at worst)")
    return f"of the observed directions, {said[0]}, {said[1]} and {said[2]}"


@from_("results/real_noise_10000/rows.csv")
def _() -> str:
    found = rows("real_noise_10000/rows")
    k = [r["loss"] for r in found if (r["kind"], r["name"]) == ("k", "equalised")]
    return f"At 10,000 words of the wiki corpus the loss at its k is at most {max(k):.3f} times"


@from_("results/real_noise_10000/rows.csv")
def _() -> str:
    found = rows("real_noise_10000/rows")
    said = [
        one(found, kind="weights", name="equalised", signal=signal)["loss"]
        for signal in ("PPMI", "log counts", "PMI - log 3")
    ]
    return f"the estimated ideal is at {said[0]:.3f}, {said[1]:.3f} and {said[2]:.3f} there"


@from_("results/equalised_sources/k.csv")
def _() -> str:
    worst = max(r["crossed"] for r in rows("equalised_sources/k") if r["rule"] == "equalised")
    return f"its k of halves costs at most {100 * (worst - 1):.1f} % over the best k"


@from_("results/equalised_sources/noise.csv")
def _() -> str:
    found = rows("equalised_sources/noise")
    before, after = ([r[x] for r in found] for x in ("law", "law_equalised"))
    return (
        f"{min(before):.3f} to {max(before):.3f} from the semicircle as it is, {min(after):.3f} to "
        f"{max(after):.3f} equalised"
    )


# Several signals.


@from_("results/several_signals/rows.csv", NOTES, SIGNALS)
def _() -> str:
    ratios = [r["ratio"] for r in rows("several_signals/rows")]
    over = sum(x > 1.02 for x in ratios)
    assert over == 0
    return f"of {len(ratios)} sets of sources, at most {100 * (max(ratios) - 1):.1f} % above"


@from_("results/several_signals/rows.csv")
def _() -> str:
    found = [r["predicted"] for r in rows("several_signals/rows")]
    return (
        f"between {dot(min(found))} and {max(found):.2f} times the true ones (median "
        f"{median(found):.2f})"
    )


@from_("results/several_signals/rows.csv")
def _() -> str:
    found = rows("several_signals/rows")
    dense = [r["embeddings_ratio"] for r in found if r["spectrum"] == "0.7/full"]
    others = [r["embeddings_ratio"] for r in found if r["spectrum"] != "0.7/full"]
    return (
        f"without signals it is at most {100 * (max(others) - 1):.1f} % above the best, and "
        f"{100 * (max(dense) - 1):.1f} % on dense spectra"
    )


@from_("results/several_signals/example.csv")
def _() -> str:
    loss = {r["use"]: r["loss"] for r in rows("several_signals/example")}
    best = loss["best concatenation, by the truth"]
    return (
        f"the average has a loss of {loss['average, rotation invariant']:.2f} where the best "
        f"concatenation that knows the ideal has {best:.2f}"
    )


def dot(x: float) -> str:
    """Two digits, without the 0 before them."""
    return f"{x:.2f}".lstrip("0")


# Scores in tasks.


def _gains(group: str, embedding: str, other: str) -> list[dict[str, Any]]:
    found = rows("downstream/differences")
    return [
        r for r in found if (r["group"], r["embedding"], r["other"]) == (group, embedding, other)
    ]


def _range(found: list[dict[str, Any]]) -> str:
    gains = [r["difference"] for r in found]
    return f"{signed(min(gains))} to {signed(max(gains))}"


@from_("results/downstream/differences.csv", NOTES, COUNTS)
def _() -> str:
    words = _gains("word similarity", "denoised", "raw, k of the ideal")
    assert all(r["low"] < 0 < r["high"] for r in words)
    sentences = _gains("STS13 to STS16", "denoised", "raw, k of the ideal")
    assert all(r["high"] < 0 for r in sentences)
    return (
        f"{_range(words)} points in word similarity, never surely, and {_range(sentences)} in "
        "STS13 to STS16, always surely"
    )


@from_("results/downstream/differences.csv")
def _() -> str:
    found = _gains("STS13 to STS16", "raw, k of the ideal", "raw, k equalised")
    assert all(r["low"] > 0 for r in found)
    words = _gains("word similarity", "raw, k of the ideal", "raw, k equalised")
    assert all(r["low"] < 0 < r["high"] for r in words)
    return f"change nothing for sure in word similarity and add {_range(found)} in STS13 to STS16"


@from_("results/downstream/differences.csv")
def _() -> str:
    found = _gains("word similarity", "Word2Vec", "raw, k equalised")
    at = {r["setting"]: r for r in found}
    assert sum(r["low"] > 0 for r in found) == 1
    ppmi = [signed(at[f"PPMI, alpha {a}"]["difference"]) for a in ("0.5", "0.25")]
    counts = [signed(at[f"log counts, alpha {a}"]["difference"]) for a in ("0.5", "0.25")]
    return (
        f"{ppmi[0]} and {ppmi[1]} points above PPMI in word similarity and {counts[0]} and "
        f"{counts[1]} above log counts"
    )


@from_("results/downstream/times.csv")
def _() -> str:
    took = {r["what"]: r["processor"] for r in rows("downstream/times")}
    return (
        f"{took['three sources, each decomposed twice']:.0f} s of processors against "
        f"{took['Word2Vec']:.0f} s for Word2Vec and {took['fastText']:.0f} s for fastText"
    )
