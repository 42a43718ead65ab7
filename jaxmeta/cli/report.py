"""What each file does to a combination, as one page that needs nothing beside it, or a picture."""

import base64
import html
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jaxmeta as jm
from jaxmeta.cli.shared import progress, read_aligned, refuse

__all__ = ["check", "write"]

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.table, pre { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; }
td.number, th.number { text-align: right; }
img { max-width: 100%; height: auto; background: white; border-radius: 4px; }
pre { font-size: .85rem; background: var(--soft); padding: 1rem; border-radius: 4px; }
footer { margin-top: 3rem; font-size: .85rem; opacity: .75; }
"""


def check(path: Path) -> None:
    """Raise if there will be no report: before there is any work."""
    from jaxmeta._checks import package

    if path.suffix.lower() not in (".html", ".png"):
        refuse("--report", f"{path}", "a name ending in .html or .png", "choose one")
    package("matplotlib.figure", "plot")


def write(
    path: Path,
    files: Sequence[Path],
    facts: dict[str, Any],
    coverage: Sequence[Any],
    *,
    name: str,
    seed: int,
    **given: Any,
) -> None:
    """Write the report; .png is the picture of the result alone."""
    together = read_aligned(files, **given)
    names, words = given["names"], together.words
    found = {
        "The files as they are, side by side": jm.diagnose(
            together.sources, names=names, words=words, progress=progress()
        )
    }
    if parts := _parts(name, together, seed):
        found[f"What {name} makes of them"] = jm.diagnose(parts, names=names, words=words)
    if path.suffix.lower() == ".png":
        jm.plot_diagnosis(list(found.values())[-1], path)
        return
    page = "".join(_page(f"Combination of {', '.join(names)}", facts, coverage, found))
    with jm.files.write_whole(path) as part:
        part.write_text(page, encoding="utf-8")


def _parts(name: str, together: Any, seed: int) -> tuple[Any, ...]:
    """The part of each file in the result before it is cut, where it has a part of its own."""
    import jax

    if name not in jm.plans.PLANS or name == "UW":
        return ()
    plan = jm.fit(name, together, jm.Settings(key=jax.random.key(seed)))
    if plan.join != "concatenate":
        return ()
    whole, cuts, at = jm.apply(plan, together).matrix, [], 0
    for move in plan.maps:
        cuts.append(whole[:, at : at + move.shape[-1]])
        at += move.shape[-1]
    return tuple(map(jax.numpy.asarray, cuts))


def _page(
    title: str, facts: dict[str, Any], coverage: Sequence[Any], found: dict[str, Any]
) -> Iterator[str]:
    shown = html.escape(title)
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{shown}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{shown}</h1>\n"
    size = f"{facts['words']:,} words, {facts['dimensions']:,} dimensions"
    if facts["changed"] is not None:
        size += f" of {facts['of']:,}, which changes inner products by {facts['changed']:.1%}"
    made = f"{facts['out'].name}: {size}; method {facts['method']}."
    yield f"<p>{html.escape(made)}</p>\n"
    yield '<div class="table"><table>\n<tr><th>file</th><th class="number">its words</th>'
    yield '<th class="number">of the result</th><th class="number">share</th>'
    yield "<th>filled in</th></tr>\n"
    for each in coverage:
        filled = f"{each.filled:,} by {each.how}" if each.filled else "none"
        numbers = (f"{each.words:,}", f"{each.found:,}", f"{each.share:.1%}")
        yield f"<tr><td>{html.escape(each.name)}</td>"
        yield "".join(f'<td class="number">{number}</td>' for number in numbers)
        yield f"<td>{filled}</td></tr>\n"
    yield "</table></div>\n"
    first = next(iter(found.values()))
    for heading, diagnosis in found.items():
        told = diagnosis.verdict if diagnosis is first else _change(first, diagnosis)
        yield f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(told)}</p>\n"
        told = html.escape(f"{heading}: shares, spectra, and how alike the files are")
        yield f'<img alt="{told}" src="data:image/png;base64,{_picture(diagnosis)}">\n'
        yield "<details><summary>In numbers</summary>\n"
        yield f"<pre>{html.escape(diagnosis.report())}</pre>\n</details>\n"
    yield f"<footer>jaxmeta {jm.__version__}</footer>\n</body>\n</html>\n"


def _change(before: Any, after: Any) -> str:
    """What became of the shares: a verdict would advise against weights that were chosen."""
    pairs = zip(before.sources, after.sources, strict=True)
    shares = (
        f"{old.name} {old.cosine_share:.0%} before and {new.cosine_share:.0%} now"
        for old, new in pairs
    )
    return f"Shares of the cosine variance: {'; '.join(shares)}."


def _picture(diagnosis: Any) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "diagnosis.png"
        jm.plot_diagnosis(diagnosis, path, title="")
        return base64.b64encode(path.read_bytes()).decode()
