"""Break formulas one at a time and see whether the tests notice.

    python tests/mutants.py            all of them, in a copy of the project; some minutes
    python tests/mutants.py noise      those of which the place has this in its name

Each mutant is a wrong sign, index, factor or limit in one line of the library, and is run against
the tests of its module in both legs (64 bit first). One that no test catches is printed as
SURVIVED, and the exit status is 1. Run by hand: it is no part of `make test`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
NOISE, SPECTRA, WEIGHTS = (
    f"tests/api/test_promises_{x}.py" for x in ("noise", "spectra", "weights")
)


class Mutant(NamedTuple):
    """A line of the library, what it is turned into, and the tests that should notice."""

    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


def mutants(file, *tests):
    """Mutants of one file, from pairs of right and wrong."""
    return lambda *pairs: [Mutant(f"jaxmeta/{file}.py", *pair, tests) for pair in pairs]


MUTANTS = [
    *mutants("pip", "tests/test_pip.py", "tests/test_dimension.py")(
        ("matmul(d.T, d)) + jnp.sum", "matmul(d.T, d)) - jnp.sum"),
        ("squared / 2))", "squared))"),
        ("q_low = 0.5 * matmul", "q_low = -0.5 * matmul"),
        ("jnp.cumsum(b * (b - 2 * strengths))", "jnp.cumsum(b * (b - strengths))"),
    ),
    *mutants("dimension", "tests/test_dimension.py")(
        ("return 1 + jnp.argmin(loss_changes(", "return jnp.argmin(loss_changes("),
        ("safe_ratio(scale, ideal), 2 * scale)", "safe_ratio(scale, ideal), scale)"),
        ("ideal + scale * safe_ratio", "ideal - scale * safe_ratio"),
        ("jnp.where(ideal > 0, changes, jnp.inf)", "changes"),
        ("- v * away / distance)) / jnp.pi", "+ v * away / distance)) / jnp.pi"),
        ("return x, x + jnp.sum(shares", "return x, x - jnp.sum(shares"),
        ("[2 * (n - r)]", "[n - r]"),
        ("middles = (edges[1:] + edges[:-1]) / 2", "middles = edges[1:]"),
    ),
    *mutants("bounds", "tests/test_bounds.py")(
        ("steps = jnp.abs(a - jnp.pad(a[1:], (0, 1)))",
         "steps = jnp.abs(a - jnp.append(a[1:], a[-1:]))"),
        ("beyond[:, 1:], ((0, 0), (0, 1)))", "beyond[:, :-1], ((0, 0), (1, 0)))"),
        ("+ 2 * jnp.sum(across)", "+ jnp.sum(across)"),
        ("(column >= start + size)", "(column > start + size)"),
    ),
    *mutants("weights", "tests/test_weights.py", "tests/test_direction_weights.py")(
        ("source_values, alpha, source_alphas, factor=2)",
         "source_values, alpha, source_alphas, factor=1)"),
        ("precision = of_each(spiked_overlap, debiased) / variances",
         "precision = of_each(spiked_overlap, debiased) * variances"),
        ("terms = overlaps / (variances * (1 + overlaps))",
         "terms = overlaps / (variances * (1 - overlaps))"),
        ("jnp.sum(overlaps * terms, axis=0", "jnp.sum(terms, axis=0"),
    ),
    *mutants("noise", "tests/test_noise.py", NOISE)(
        ("return norm(entries) / (2 * count**0.5)", "return norm(entries) / (2 * count) ** 0.5"),
        ("(v**2 - a**2 - b**2 + root) / 2", "(v**2 - a**2 + b**2 + root) / 2"),
        ("/ (1 + left**2)", "/ (1 + right**2)"),
    ),
    *mutants("shrinkage", "tests/test_shrinkage.py", NOISE)(
        ("return eigenvalues - 2 * eigenvalues", "return eigenvalues - eigenvalues"),
        ("width = n * imaginary + (1 - share) ** 3", "width = n * imaginary + (1 + share) ** 3"),
        ("estimate if positive else jnp.sign(eigenvalues) * estimate", "estimate"),
    ),
    *mutants("quadratic", "tests/test_quadratic.py")(
        ("- 2 * quadratic.linear\n", "- quadratic.linear\n"),
        ("        matmul(z.T, z) ** 2,", "        jnp.abs(matmul(z.T, z)),"),
        ("free = x > matmul(a0, x) - c0", "free = x > c0 - matmul(a0, x)"),
    ),
    *mutants("text/counting", "tests/text/test_counting.py")(
        ("return x + x.T", "return x + x"),
    ),
    *mutants("text/_pairs", "tests/text/test_counting.py")(
        ("for offset in range(1, window + 1):", "for offset in range(window):"),
        ("np.frexp(leaf ^ other)", "np.frexp(leaf - other)"),
    ),
    *mutants("text/_parallel", "tests/text/test_parallel_counting.py")(
        ("(0 if run.opening else position)", "0"),
        ("start = position - before.size", "start = position"),
        ("default=-1) :]", "default=-1) + 1 :]"),
        ("apart += [both[: before.size], nothing,", "apart += [nothing,"),
    ),
    *mutants("text/corpus", "tests/text/test_parallel_counting.py")(
        ("ended = opening\n", "ended = True\n"),
        ("most = PIECE + -read % PIECE", "most = PIECE"),
        ('exact == "utf-8" and place.start == 0', 'exact == "utf-8"'),
    ),
    *mutants("text/splits", "tests/text/test_counting.py")(
        ("< 0.5)[which - start]", "< 0.5)[0]"),
        ("<< level) + label", "<< level)"),
        ("* parts - 1) // tokens", "* parts) // tokens"),
        ("start, end = 2 * start, 2 * end", "start, end = 2 * start, 2 * end - 1"),
    ),
    *mutants("text/_steps", "tests/text/test_sources.py")(
        ("counts * (self.total / float(counts.sum()))", "counts * number"),
    ),
    *mutants("text/signals", "tests/text/test_signals.py")(
        ("/ (rows[i] * columns[j])", "/ (rows[i] * rows[i])"),
        ("jnp.log(ratio) - jnp.log(shift)", "jnp.log(ratio) + jnp.log(shift)"),
    ),
    *mutants("evaluate/scores", "tests/evaluate/test_scores.py")(
        ("math.sqrt(first.covered - 3) / 2)", "math.sqrt(first.covered - 2) / 2)"),
        ("p = min(1.0, 2 * (1 + rarer)", "p = min(1.0, (1 + rarer)"),
        ("differences += len(own) / first.covered * apart", "differences += apart"),
    ),
    *mutants("files/alignment", "tests/files/test_alignment.py", "tests/files/test_prediction.py")(
        ("return level + matmul(x - centre", "return level + matmul(x + centre"),
        ("unit = jnp.trace(gram) / gram.shape[0]", "unit = jnp.trace(gram)"),
        ("present = np.stack([row >= 0", "present = np.stack([row > 0"),
    ),
    *mutants("files/_binary", "tests/files")(
        ("at = space + 1 + 4 * columns", "at = space + 2 + 4 * columns"),
    ),
    *mutants("files/_text", "tests/files")(
        ("np.arange(-columns, 1)]", "np.arange(-columns, 1) - 1]"),
    ),
    *mutants("_twofold", "tests/test_covariance.py")(
        ("_sum(high, matmul(a2.T, b1))", "_sum(high, matmul(a2.T, b2))"),
        ("STEPS = 4", "STEPS = 1"),
        ("product(gram.high.T, b)", "product(gram.high, b)"),
    ),
    *mutants("covariance", "tests/test_covariance.py")(
        ("twofold(jnp.pad(-new, (1, 0)))", "twofold(jnp.pad(new, (1, 0)))"),
        ("jnp.where(here, source - shift[None, :], 0)", "source - shift[None, :]"),
    ),
    *mutants("affine", "tests/test_plans.py")(
        ("jnp.where(values[0] == 0, 1, values[0])) ** 4",
         "jnp.where(values[0] == 0, 1, values[0])) ** 2"),
        ("max(int(np.argmax(known <= share)), 1)", "int(np.argmax(known <= share)) + 1"),
        ("(1 - jnp.concatenate(seen.overlaps))", "jnp.concatenate(seen.overlaps)"),
        ("safe_ratio(safe_sqrt(strength), values**2)", "safe_ratio(safe_sqrt(strength), values)"),
    ),
    *mutants("plans", "tests/test_plans.py")(
        ("safe_ratio(power(values, -0.5)", "safe_ratio(power(values, 0.5)"),
        ("jnp.sum(safe_ratio(halves, size) ** 4)", "jnp.sum(safe_ratio(halves, size) ** 2)"),
        ("sigma * jnp.sqrt(pair.rows / n)", "sigma * (pair.rows / n)"),
    ),
    *mutants("similarity", "tests/test_similarity.py", "tests/test_similarity_by_chance.py")(
        ("* (n / (n - 2))", "* (n / (n - 1))"),
        ("jnp.sum(p) * jnp.sum(q) / (n - 1)", "jnp.sum(p) * jnp.sum(q) / n"),
        ("(1 + above) / (1 + draws)", "above / draws"),
    ),
]  # fmt: skip


def caught(mutant: Mutant, copy: Path) -> str:
    """The leg whose tests fail, or nothing."""
    place = copy / mutant.file
    text = place.read_text()
    if text.count(mutant.right) != 1:
        sys.exit(
            f"{mutant.file}: {mutant.right!r} is there {text.count(mutant.right)} times, not once"
        )
    place.write_text(text.replace(mutant.right, mutant.wrong))
    try:
        for x64, leg in (("1", "64 bit"), ("0", "32 bit")):
            environment = os.environ | {"JAX_ENABLE_X64": x64, "PYTHONPATH": str(copy)}
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
            found = subprocess.run(
                [*command, *mutant.tests], cwd=copy, env=environment, capture_output=True, text=True
            )
            if found.returncode == 1:
                failed = [line for line in found.stdout.splitlines() if line.startswith("FAILED")]
                return f"{leg}, {failed[0].split()[1] if failed else '?'}"
            if found.returncode not in (0, 5):  # 5: nothing to run in this leg
                sys.exit(f"{mutant.file}: the tests could not run\n{found.stdout}{found.stderr}")
        return ""
    finally:
        place.write_text(text)


def main(names: list[str]) -> int:
    """Run the mutants that are asked for."""
    chosen = [m for m in MUTANTS if not names or any(name in m.file for name in names)]
    survivors, started = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "project"
        ignored = shutil.ignore_patterns(".git", ".venv", ".cache", "results", "__pycache__")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for i, mutant in enumerate(chosen, start=1):
            by = caught(mutant, copy)
            survivors += not by
            verdict = f"caught ({by})" if by else "SURVIVED"
            print(f"{i:>3} {mutant.file}: {mutant.wrong.strip()}\n    {verdict}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} caught, {time.monotonic() - started:.0f} s")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
