"""Attacks on the library, run by hand: what they tried and found stands in docs/tried.md.

    python -m tests.attack                       all of them, about a quarter of an hour
    python -m tests.attack files --number 1000   one of them
    python -m tests.attack --page                docs/tried.md, from the figures that are kept

Each has a seed, so that a fault that it finds can be found again.
"""
