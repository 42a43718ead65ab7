"""What the pages say of weights and k beside the best there are, by what is stored in results/."""

import math

from experiments._quoted import from_, one, rows

CHOOSE = "docs/choose.md"
SPECTRA = "0.4/500", "0.5/full", "0.8/full"
WEIGHTS = {
    "DW, own USVT ideal (the paper)": "DW, own USVT",
    "`shrinkage_weights` (spiked)": "spiked",
    "`rotation_invariant`": "RIE",
    "`ideal_strengths`": "ideal strengths",
}
RULES = {
    "RIE rule: mean k; loss over the smallest": "RIE",
    "`ideal_strengths` rule": "ideal strengths",
    "spiked rule": "spiked",
    "the paper's recipe": "paper, closed form",
}
SETTING = {"signs": "positive", "alpha": 0.5}
ORACLE, CHOICE = "weights_vs_oracle/rows", "pip_dimension/rows"


def _weights(label: str) -> str:
    found = [
        one(
            rows(ORACLE),
            method=WEIGHTS[label],
            spectrum=x,
            sources=1,
            n=1500,
            sigma=0.12,
            **SETTING,
        )
        for x in SPECTRA
    ]
    cells = (f"{r['mean_ratio']:.3f} ({r['worst_ratio']:.3f})" for r in found)
    return " | ".join((f"| {label}", *cells)) + " |"


def _choice(label: str) -> str:
    found = [one(rows(CHOICE), rule=RULES[label], spectrum=x, **SETTING) for x in SPECTRA]
    cells = (f"{r['k']:.1f}; {r['mean_ratio']:.4f} ({r['worst_ratio']:.4f})" for r in found)
    return " | ".join((f"| {label}", *cells)) + " |"


def _register() -> None:
    for label in WEIGHTS:
        from_(f"results/{ORACLE}.csv", CHOOSE)(lambda label=label: _weights(label))  # type: ignore[misc]
    for label in RULES:
        from_(f"results/{CHOICE}.csv")(lambda label=label: _choice(label))  # type: ignore[misc]


_register()


@from_(f"results/{CHOICE}.csv")
def _() -> str:
    found = [one(rows(CHOICE), rule="RIE", spectrum=x, **SETTING)["true_k"] for x in SPECTRA]
    return " | ".join(("| true argmin, mean", *(f"{k:.1f}" for k in found))) + " |"


@from_(f"results/{CHOICE}.csv")
def _() -> str:
    found = [one(rows(CHOICE), rule="RIE", spectrum=x, **SETTING) for x in SPECTRA]
    one_, two, three = (f"{100 * r['within']:.0f}" for r in found)
    return f"within 10 % or 2 dimensions of the argmin in {one_}, {two} and {three} % of draws"


@from_(f"results/{CHOICE}.csv")
def _() -> str:
    setting = {"spectrum": "0.4/500", "signs": "indefinite", "alpha": 0.25}
    found = one(rows(CHOICE), rule="ideal strengths", **setting)
    return f"(p = .4, indefinite: {found['k']:.0f} against {found['true_k']:.0f} in the mean)"


@from_(f"results/{ORACLE}.csv", CHOOSE)
def _() -> str:
    shared = {"sources": 3, "n": 1200, "spectrum": "0.7/full", "signs": "positive", "alpha": 0.5}
    dw, aligned = (
        one(rows(ORACLE), method=method, **shared) for method in ("DW, own USVT / N", "aligned")
    )
    return (
        f"the paper's DW {dw['mean_ratio']:.3f} ({dw['worst_ratio']:.3f}), `aligned_weights` "
        f"{aligned['mean_ratio']:.3f} ({aligned['worst_ratio']:.3f})"
    )


@from_(f"results/{CHOICE}.csv")
def _() -> str:
    found = [one(rows(CHOICE), rule="RIE", spectrum=x, **SETTING) for x in SPECTRA]
    most = math.ceil(100 * max(r["worst_ratio"] for r in found) - 100)
    return f"at the predicted k is always within {most} %"


@from_(f"results/{ORACLE}.csv")
def _() -> str:
    setting = {"sources": 1, "n": 1500, "spectrum": "0.5/full", "signs": "indefinite"}
    rie, ideal = (
        one(rows(ORACLE), method=method, sigma=0.12, alpha=0.5, **setting)["worst_ratio"]
        for method in ("RIE", "ideal strengths")
    )
    assert 1.3 < rie < 1.4
    return f"are a third above the optimum, where those of `ideal_strengths` are {_within(ideal)}"


def _within(ratio: float) -> str:
    return f"within {math.ceil(100 * ratio - 100)} %"


@from_("results/weights_vs_oracle/debiased.csv")
def _() -> str:
    worst: dict[str, float] = {}
    for r in rows("weights_vs_oracle/debiased"):
        worst[r["spectrum"]] = max(worst.get(r["spectrum"], 0.0), r["largest_bad"])
    return (
        f"within 2 % of every ideal value only above about {min(worst.values()):.1f} to "
        f"{max(worst.values()):.1f}"
    )


@from_("results/weights_vs_oracle/debiased.csv")
def _() -> str:
    found = [r for r in rows("weights_vs_oracle/debiased") if "isolated" in r["spectrum"]]
    counts = [r["count"] * r["detected"] for r in found]
    errors = [r["detected_error"] * n for r, n in zip(found, counts, strict=True)]
    return f"come with a mean error of {100 * sum(errors) / sum(counts):.1f} %"
