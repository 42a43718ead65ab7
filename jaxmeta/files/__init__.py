"""Vectors in files, brought to the same words, and put together."""
