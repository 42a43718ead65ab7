"""What tables call methods, weightings and rules, where the library has another name.

Tables are read as text, and names are typed: so a table says "DW as released", and the library
"DW-released".
"""

import jaxmeta

NAMES = {
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
    "AVG, learnt metric": "AVG-metric",
    "1TON as released": "1TON-released",
    "DAEME, cosine": "DAEME-cosine",
    "CAEME, cosine": "CAEME-cosine",
    "AAEME, cosine": "AAEME-cosine",
    "paper_spiked": "paper-spiked",
}
"""Label to name."""

_LABELS = {name: label for label, name in NAMES.items()}


def name_of(label: str) -> str:
    """The library's name of what a table calls `label`."""
    return NAMES.get(label, label)


def label_of(name: str) -> str:
    """What a table calls what the library has under this name."""
    return _LABELS.get(name, name)


RULES = {label_of(name): rule for name, rule in jaxmeta.RULES.items()}
"""Rules for k by their labels."""
