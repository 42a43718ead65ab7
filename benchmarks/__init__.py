"""Measurements: ours and the peer in one run."""
