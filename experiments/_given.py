"""Numbers in the pages that no stored result holds, phrase by phrase, and why."""

PAPER = "the paper says so"
SETTING = "a setting, not a result"
WORDING = "no result: a definition or a count of things on the page"

GIVEN: dict[str, str] = {
    # Of the paper.
    "beyond 2 or setting negative": PAPER,
    "(380, 180, 161)": PAPER,
    "than 736, not 380": PAPER,
    "| 4.1, 4.2 | printed |": "its sections",
    "1714, 185 and 222 dimensions against 1707, 303 and 220": PAPER,
    "against .3292": PAPER,
    "the first 1 GB of Wikipedia; it is the first 100 MB": PAPER,
    "(.3521 against .3566) and fewer dimensions (119 against 121)": PAPER,
    "the paper reports 30 minutes on a V100": PAPER,
    "(the paper: 30 minutes on a V100)": PAPER,
    ".0891, 1707 (Table 1); .1472, 736 (Tables 2, 3)": PAPER,
    ".3566, 121 (Tables 2, 3)": PAPER,
    ".3521, 119 (Tables 2, 3)": PAPER,
    "206 and 492 million there": PAPER,
    "in print .1472, .3566 and .3521 for 736, 121 and 119": PAPER,
    "the paper has 976 dimensions for DAEME": PAPER,
    "chooses 300 for AAEME": PAPER,
    # Of the released code and the texts at hand.
    "that number for text8 in 2020 (it has 20,000 now)": "its configurations, by date",
    "(SW is in it as in 2020, after a cube root in April 2021.)": "its history",
    "as released in 2021 it is": "a name",
    "windows of 5 on both sides where the released code has 6 on the left": "its window, and ours",
    "| AEME: epochs | 200 | its rate has fallen to 0.2 % by then |": "0.99 to a power",
    "6.4 million tokens of news, 11.7 of film reviews": "sizes of the texts at hand",
    "6.4 and 11.7 million tokens here": "sizes of the texts at hand",
    "16.9 M tokens, 20,000 words, window 5": "the size of the text, and settings",
    "of STS-B's 15,437": "sentences of a data set",
    "SICK's 6,077": "sentences of a data set",
    # Settings and definitions.
    "(20 seeds each, n = 1500": SETTING,
    "There are 10,000 words, not 20,000": SETTING,
    "the text, its 10,000 words": SETTING,
    "with 10,000 words one minimum": SETTING,
    "| blocks of 1,000 tokens": SETTING,
    "all eigenvalues of 20,000 words": SETTING,
    "p < .05": SETTING,
    "p < .01": SETTING,
    "k by .05": SETTING,
    "cut by .05": SETTING,
    "as few as change inner products by 5 %": SETTING,
    "an exponent of .75": SETTING,
    "From 100 dimensions on": SETTING,
    "Between 200 dimensions of each source": SETTING,
    "three exponents for UW, 0": SETTING,
    "at an exponent of 0": SETTING,
    "exponents for UW, 0, ¼ and ½": SETTING,
    "which is near ½": "the theory of `balanced_exponent`",
    "`standardise` takes ½": SETTING,
    "MTurk-771 at ½ for all sources": PAPER,
    "harmless at ½": SETTING,
    "\N{GREEK SMALL LETTER ALPHA} = ½": SETTING,
    "scores are times 100": SETTING,
    "length 1": SETTING,
    "length-1": SETTING,
    "would be above 1, the wrong way": "CKA is 1 for two equal embeddings: a reason, not a result",
    "all values and weights 1": WORDING,
    "source 2 holds": WORDING,
    "source 1 none": WORDING,
    "Source 2's directions": WORDING,
    "a ridge of .01 of": SETTING,
    "| 0 | continuous in": WORDING,
    "| 0 | any weight gives": WORDING,
    "the released code adds the 1": WORDING,
    "; 0, unless said otherwise": WORDING,
    "the released code's 0": WORDING,
    "| derivative of": WORDING,
    "at 0 | one-sided where finite, else 0 |": WORDING,
    "(3.11 or later": "a version",
    "Until 1.0": "a version",
    "switch to 64 bit": WORDING,
    "exact products of 8 bits": WORDING,
    "is 0, below about 1e-7 of": "held by tests/test_covariance.py",
    "decompositions of the rows themselves leave 1e-16": "the rounding of float64",
    "spectra keep a relative error below 1e-5 up to conditions of 1e3": "tests/test_covariance.py",
    # Of examples that are tests on the same page.
    "Biased CKA (first column) is .28": "the example above it",
    "the unbiased one is about 0": "the example above it",
    "are 1 for the same embedding up to rotation, scale and mean": WORDING,
    "is 0. Biased CKA is above 0": WORDING,
}
"""Numbers that no result of ours can hold, with the reason."""

_ORACLE = "python -m experiments.weights_vs_oracle"
_CHOICE = "python -m experiments.pip_dimension"
_PIP = "python -m benchmarks.pip_loss --large"
_EIGEN = "python -m benchmarks.eigen, .counting"
PENDING: dict[str, str] = {
    "| | p = .4, rank 500 | p = .5 | p = .8 |": _CHOICE,
    "| true argmin, mean | 43.8 | 18.9 | 7.0 |": _CHOICE,
    "| 46.3; 1.0004 (1.0015) | 19.6; 1.0003 (1.0017) | 6.8; 1.0002 (1.0032) |": _CHOICE,
    "| 40.9; 1.0003 (1.0009) | 18.4; 1.0001 (1.0005) | 6.8; 1.0003 (1.0032) |": _CHOICE,
    "| 78.8; 1.0166 (1.0181) | 41.5; 1.0468 (1.0524) | 7.1; 1.0006 (1.0058) |": _CHOICE,
    "| 9.8; 1.0672 (1.0735) | 6.0; 1.0506 (1.0517) | 3.0; 1.0913 (1.0951) |": _CHOICE,
    "within 10 % or 2 dimensions of the argmin in 70, 90 and 100 % of draws": _CHOICE,
    "predicted k is always within 1 %": _CHOICE,
    "is within 2 % of every ideal value only above about 4 to 5.5": _CHOICE,
    "with a mean error of 1.1 %": _CHOICE,
    "(p = .4, indefinite: 340 against 115 in the mean)": _CHOICE,
    "for indefinite signals at p = .5": _ORACLE,
    "those of `ideal_strengths` are within 1 %": _ORACLE,
    "mean of 20 draws (worst), n = 1500": _ORACLE,
    "| ideal spectrum $i^{-p}$ | p = .4, rank 500 | p = .5 | p = .8 |": _ORACLE,
    "| 1.321 (1.323) | 1.823 (1.827) | 1.287 (1.295) |": _ORACLE,
    "| 1.216 (1.217) | 1.740 (1.745) | 1.135 (1.138) |": _ORACLE,
    "| 1.003 (1.003) | 1.009 (1.011) | 1.024 (1.029) |": _ORACLE,
    "| 1.001 (1.001) | 1.002 (1.002) | 1.002 (1.004) |": _ORACLE,
    "(n = 1200, p = .7), as a ratio to the best *concatenation*: the paper's DW 1.386 (1.391), "
    "`aligned_weights` 1.019 (1.020)": _ORACLE,
    "diverges from about 600 neighbours on": "a prototype: no command prints it",
    "(0.47 to 0.53 for these files)": "python -m experiments.pretrained prints it",
    "2.6 GiB": "python -m experiments.corpus_to_sources prints it",
    "the two agree to 1e-5 in float32": _PIP,
    "(relative errors from 7e-4 to 6e-1 there; ours at most 8e-6)": _PIP,
    "At 400,000 \N{MULTIPLICATION SIGN} 300 in float32 the peak is 3.4 GiB": _PIP,
    "when two embeddings agree to 1e-5": _PIP,
    "| 5.1 s; 9.6 s |": _EIGEN,
    "| 1,000 eigenpairs of its PPMI to a residual of 1e-3": _EIGEN,
    "| 29.6 s, 23.2 s (SciPy's eigsh: 157.4 s) |": _EIGEN,
    "Text is read 6.1 times as fast as by gensim": "python -m benchmarks.vectors",
}  # fmt: skip
"""Numbers whose run is not stored yet, and what prints them. A run that is stored moves them up."""

PATTERNS: dict[str, str] = {
    r"(Tables?|Figures?|Eqs?\.|Equations|Lemmas?|Theorem|[Ss]ections?|Term) [\d.]+"
    r"((,| and|, and| to) [\d.]+)*": "its number in the paper",
    r"(?m)^ *\d+\. ": "the number of an item",
    r"(RG|WS|MTurk|SimLex|SimVerb|CoNLL|STS|SemEval)-?\d+": "a name",
    r"IJCAI \d+": "a year",
}
"""What is no result wherever it stands."""
