r"""Source embeddings are made of corpora (sections 3.5 and 4.1 of the paper).

The vocabulary is what all corpora share. Of each corpus the whole, its halves, quarters and eighths
are counted in one pass; the signals of these give the noise, those of the halves alone the paper's
$\sigma$. The density of the spectrum tells about how many dimensions the rule keeps, and so how
many leading eigenpairs are computed.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.sparse import csr_array

from jaxmeta import _checks
from jaxmeta._brief import brief
from jaxmeta._files import Cache
from jaxmeta.dimension import RULES, best_dimension
from jaxmeta.eigen import Eigenpairs
from jaxmeta.equalise import estimate_ideal
from jaxmeta.linalg import fix_signs
from jaxmeta.nested import NestedNoise
from jaxmeta.noise import usvt_rank
from jaxmeta.pip import strengths_against
from jaxmeta.progress import Progress, silent
from jaxmeta.spectral import Spectrum, embed
from jaxmeta.text._steps import Counting, Steps, contents, vocabulary_of
from jaxmeta.text.corpus import Corpus, Vocabulary, intersection_vocabulary, paths_of
from jaxmeta.text.counting import contiguous_parts, random_blocks
from jaxmeta.weightings import Observed

__all__ = ["EQUALISED", "Recipe", "Source", "build_sources"]

EQUALISED = "equalised"
"""The rule that estimates an ideal, beside those of `RULES`."""
SYMMETRIC = (EQUALISED, "rie", "ideal")  # rules that ask for eigenvalues with their signs
MOST = 1024  # directions of an estimated ideal

PARTS = 8  # of a corpus: three levels show how noise falls with the size of a part


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A recipe names a source, its corpus, and its signal."""

    name: str
    corpus: Corpus
    signal: Callable[[csr_array], Any]
    """From sparse counts to a sparse signal, such as `log_count` or `ppmi`."""
    window: Callable[..., csr_array] | None = None
    """From counts by offset to counts, if it is not `symmetric_window`: `released_window`, say. A
    signal of such counts is taken apart by its singular values and left singular vectors."""


class Source(NamedTuple):
    """A source is an embedding and all that its weights depend on."""

    name: str
    words: tuple[str, ...]
    spectrum: Spectrum
    """Leading directions and values: at least k of them."""
    eigenvalues: Float[np.ndarray, " n"]
    """All eigenvalues, by magnitude; those beyond the spectrum are estimates of their density."""
    sigma: float
    """Standard deviation of the noise in an entry of the signal."""
    rank: int
    """How many values are above the edge of the noise (estimated beyond the spectrum)."""
    k: int
    alpha: float
    residual: float
    r"""The largest $\|Mu - \lambda u\| / |\lambda|$ of the spectrum, for $MM^\top$ if $M$ is not
    symmetric."""
    ideal: Spectrum | None = None
    """The estimated ideal (`jaxmeta.equalise`), by the rule "equalised"."""
    noise: NestedNoise | None = None
    """What that rule knows of the noise: sigma of the whole, its error and growth, and scales."""

    def __repr__(self) -> str:
        return brief(self)

    @property
    def embedding(self) -> Float[Array, "n k"]:
        """The k leading directions, scaled by the values to the power of alpha."""
        return embed(self.spectrum, k=self.k, alpha=self.alpha)

    @property
    def denoised(self) -> Float[Array, "n d"]:
        """All directions of the estimated ideal, scaled by its values to the power of alpha."""
        if self.ideal is None:
            _checks.fail("ideal", "None", "an estimate", f'build the source by rule="{EQUALISED}"')
        return embed(self.ideal, k=len(self.ideal.values), alpha=self.alpha)

    @property
    def values(self) -> Float[Array, " k"]:
        """The k leading values."""
        return self.spectrum.values[: self.k]

    @property
    def observed(self) -> Observed:
        """What weights depend on, for `jaxmeta.weightings.weigh`."""
        strengths = None
        if self.ideal is not None:
            vectors = self.spectrum.vectors[:, : self.k]
            strengths = strengths_against(self.ideal, vectors, alpha=self.alpha)
        return Observed(
            self.values,
            len(self.words),
            self.alpha,
            self.sigma,
            jnp.asarray(self.eigenvalues, self.values.dtype),
            strengths=strengths,
        )


def build_sources(
    recipes: Sequence[Recipe],
    *,
    size: int | None = 20_000,
    min_count: int = 1,
    join: Callable[..., Vocabulary] = intersection_vocabulary,
    window: int = 5,
    weights: Sequence[float] | np.ndarray | None = None,
    unknown: str = "keep",
    contiguous: bool = False,
    seed: int = 0,
    alpha: float = 0.5,
    rule: str = EQUALISED,
    tolerance: float = 1e-3,
    workers: int = 1,
    cache: str | Path | None = None,
    progress: Progress | None = None,
) -> tuple[Source, ...]:
    """Build source embeddings of one vocabulary, with noise, spectra, ranks and dimensionalities.

    The vocabulary is the `size` most frequent words of at least `min_count` in each corpus, as
    `join`ed by `intersection_vocabulary` or `union_vocabulary`. For `window`, `weights` and
    `unknown` see `symmetric_window` and `count_windows`; a recipe may have a window of its own. The
    noise is that of random blocks by `seed`, as the paper has it, or of `contiguous` parts, as its
    released code has it. `alpha` is the exponent of the embedding, and `tolerance` that of
    `leading_eigenpairs`. With `workers` processes count: see `count_windows`. In the folder `cache`
    each step is kept under the settings that it depends on; a changed setting repeats only what
    follows from it. Files are told apart by what they hold, parts of random blocks by names of
    files too, and functions by their code and what is bound to them.

    `rule` says how many dimensions are kept. It is one of `RULES`, which have one sigma, from
    halves of the corpus; or "equalised", which takes the noise from halves, quarters and eighths
    and scales words so that all rows have it alike. That rule estimates the ideal of each source
    (see `jaxmeta.equalise`), which the source keeps, and k is where the PIP loss against it is
    smallest. The ideal has the directions above the edge of the noise, at most 1,024.

    Cost: reading each corpus twice, and for each source the cost of `leading_eigenpairs`: twice, if
    equalised.
    """
    names = [recipe.name for recipe in recipes]
    if not names or len(set(names)) < len(names):
        expected = "at least one, and all different"
        _checks.fail("recipes", f"the names {names}", expected, "name each source")
    rule = _checks.named("rule", rule, (*RULES, EQUALISED), "pass a string")
    _checks.not_negative("alpha", alpha, "pass 0.5, as the paper does, or another exponent")
    if rule == "rie" and alpha != 0.5:
        _checks.fail("alpha", str(alpha), '0.5 with the rule "rie"', 'use the rule "ideal"')
    for j, recipe in enumerate(recipes):
        if recipe.window is not None and (rule in SYMMETRIC or weights is not None):
            got = f'rule="{rule}"' if rule in SYMMETRIC else "weights"
            do = 'choose rule="paper" or "spiked"' if rule in SYMMETRIC else "leave weights out"
            expected = "none that are for a symmetric window alone"
            _checks.fail(f"recipes[{j}].window", f"a window and {got}", expected, do)
    # These would be noticed as well without a check, but after minutes.
    _checks.integer("window", window, least=1)
    _checks.integer("workers", workers, least=1)
    _checks.positive("tolerance", tolerance, "pass a relative residual, such as 1e-3")
    if cache is not None and Path(cache).is_file():
        _checks.fail("cache", f"{cache}, a file", "a folder", "choose another name")
    store, say = Cache(None if cache is None else Path(cache)), progress or silent
    # Without a cache corpora need no name that lasts.
    key_of = (lambda corpus: str(id(corpus))) if cache is None else contents
    keys = [key_of(recipe.corpus) for recipe in recipes]
    corpora = {key: recipe.corpus for key, recipe in zip(keys, recipes, strict=True)}
    own = {key: vocabulary_of(store, corpora[key], key, min_count, say) for key in corpora}
    shared = join(list(own.values()), size=size)
    built: dict[str, Source] = {}
    for key, corpus in corpora.items():
        settings = {
            "corpus": key,
            "words": hashlib.sha256("\n".join(shared.words).encode()).hexdigest(),
            "window": window,
            "unknown": unknown,
        }
        places = _places(own[key], shared, unknown)
        split = contiguous_parts(places, PARTS) if contiguous else random_blocks(seed, parts=PARTS)
        options = {"window": window, "unknown": unknown, "split": split, "workers": workers}
        options["progress"] = say
        parts: dict[str, Any] = {"split": "contiguous"}
        if not contiguous:  # coins depend on the names of files
            parts = {"split": seed, "names": [path.name for path in paths_of(corpus.path)]}
        counting = Counting(store, settings, parts, corpus, shared, options)
        for recipe in (r for r, k in zip(recipes, keys, strict=True) if k == key):
            how = weights, tolerance, say, recipe.window
            steps = Steps(counting, recipe.name, recipe.signal, *how)
            built[recipe.name] = _source(steps, alpha, rule)
    return tuple(built[name] for name in names)


def _places(own: Vocabulary, shared: Vocabulary, unknown: str) -> int:
    """Count the tokens of a corpus that have a place in windows."""
    if unknown == "keep":
        return own.tokens
    counts = dict(zip(own.words, own.counts.tolist(), strict=True))
    return sum(counts.get(word, 0) for word in shared.words)


def _source(steps: Steps, alpha: float, rule: str) -> Source:
    choose = _by_ideal if rule == EQUALISED else _by_rule
    pairs, k, more = choose(steps, alpha, rule)
    sigma = steps.sigma if more.get("noise") is None else float(steps.nested.sigma)
    return Source(
        name=steps.name,
        words=steps.counting.vocabulary.words,
        spectrum=Spectrum(fix_signs(pairs.vectors), jnp.abs(pairs.values)),
        eigenvalues=pairs.spectrum,
        sigma=sigma,
        rank=int(usvt_rank(jnp.asarray(np.abs(pairs.spectrum)), sigma=sigma, n=steps.n)),
        k=k,
        alpha=alpha,
        residual=float(jnp.max(pairs.residuals)),
        **more,
    )


def _by_rule(steps: Steps, alpha: float, rule: str) -> tuple[Eigenpairs, int, dict[str, Any]]:
    """Leading eigenpairs, and how many of them a rule keeps that knows eigenvalues and sigma."""

    def dimensions(eigenvalues: np.ndarray) -> int:
        found = RULES[rule](jnp.asarray(eigenvalues, jnp.result_type(float)), steps.sigma, alpha)
        return max(1, int(found))

    pairs, k = None, dimensions(steps.observed.density.spectrum())
    while pairs is None or k > len(pairs.values):
        pairs = steps.observed.eigenpairs(k)
        k = dimensions(pairs.spectrum)
    return pairs, k, {}


def _by_ideal(steps: Steps, alpha: float, _: str) -> tuple[Eigenpairs, int, dict[str, Any]]:
    """Leading eigenpairs, and how many of them an estimated ideal says are worth keeping."""
    noise, n = steps.nested, steps.n
    dtype = jnp.result_type(float)
    magnitudes = jnp.asarray(np.abs(steps.equalised.density.spectrum()), dtype)
    above = int(usvt_rank(magnitudes, sigma=noise.sigma, n=n))
    equalised = steps.equalised.eigenpairs(min(max(1, above), n, MOST))
    estimate = estimate_ideal(equalised, sigma=noise.sigma, scales=noise.scales)
    eigenvalues = jnp.asarray(steps.observed.density.spectrum(), dtype)
    least = min(int(RULES["rie"](eigenvalues, noise.sigma, 0.5)), MOST)
    while True:
        pairs = steps.observed.eigenpairs(least)
        strengths = strengths_against(estimate.spectrum, pairs.vectors, alpha=alpha)
        k = int(best_dimension(jnp.abs(pairs.values), strengths, alpha=alpha))
        if k < len(pairs.values) or len(pairs.values) == n:
            return pairs, k, {"ideal": estimate.spectrum, "noise": noise}
        least = min(2 * least, n)
