"""Experiments, one module per table or figure: `python -m experiments.<name> [--smoke]`."""
