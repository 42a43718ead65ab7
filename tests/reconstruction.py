"""Dense float64 truths of the steps of the locally linear meta-embedding."""

import numpy as np


def neighbours_of(source, number, present=None):
    """Indices by differences, one pair of words at a time; -1 for words that are not there."""
    n = len(source)
    present = np.ones(n, bool) if present is None else present
    found = np.full((n, number), -1)
    for v in np.flatnonzero(present):
        distances = ((source - source[v]) ** 2).sum(axis=1)
        others = [u for u in range(n) if u != v and present[u]]
        found[v] = sorted(others, key=lambda u, d=distances: (d[u], u))[:number]
    return found


def weights_of(sources, lists, v, ridge):
    """Words and weights of one word by the printed formula, and the sum they had before scaling."""
    lists = [[u for u in found[v] if u >= 0] for found in lists]
    words = sorted(set().union(*lists))
    blocks, target = [], []
    for source, found in zip(sources, lists, strict=True):
        if found:
            blocks.append(np.array([source[u] * (u in found) for u in words]).T)
            target.append(source[v])
    z, t = np.concatenate(blocks), np.concatenate(target)
    gram = z @ z.T
    r = ridge * np.trace(gram) / len(gram) if gram.any() else 1.0
    uniform = np.full(len(words), 1 / len(words))
    w = uniform + z.T @ np.linalg.solve(gram + r * np.eye(len(gram)), t - z @ uniform)
    return words, w / w.sum(), w.sum()


def matrix_of(sources, lists, ridge, *, normalised):
    """W' as a dense array."""
    n = len(sources[0])
    matrix = np.zeros((n, n))
    for v in range(n):
        words, weights, _ = weights_of(sources, lists, v, ridge)
        for u, w in zip(words, weights, strict=True):
            matrix[v, u] = w * sum(u in found[v] for found in lists)
    return matrix / matrix.sum(axis=1, keepdims=True) if normalised else matrix


def distortion(matrix):
    left = np.eye(len(matrix)) - matrix
    return left.T @ left


def smallest(q, k, *, constant):
    """The k last eigenvalues and vectors, the constant vector left out."""
    if constant:
        q = q + np.trace(q) / len(q)  # lifts that vector to the top
    values, vectors = np.linalg.eigh(q)
    return values[:k], vectors[:, :k]


def find_lists(sources, number, present=None):
    has = np.ones((len(sources[0]), len(sources)), bool) if present is None else present
    return [neighbours_of(s, number, h) for s, h in zip(sources, has.T, strict=True)]
