"""The report of a learnt model: one self-contained HTML file that loads nothing and runs nothing."""

from base64 import b64encode
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.text import printable
from learning.convex.whitening import STAGE
from learning.latent.alternation import LogEntry
from learning.reports.closeup import KINDS, Closeup
from learning.reports.closeup_drawing import closeup_figure
from learning.reports.figures import image_bytes, require_matplotlib
from learning.reports.history_drawing import history_figure
from learning.reports.html import check_html, document, write_html
from learning.reports.pooling_drawing import pooling_figure
from retrieval.descriptors.learnt import LearntModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEADINGS = {  # of the table of models, by the key of a model's entry
    "stage": "stage",
    "share": "K, share of features",
    "mu": "μ",
    "shrinkage": "shrinkage",
    "gamma": "γ",
    "dim": "dimensions",
    "recall": "recall, training",
    "validation": "recall, validation",
}
_SHARES = ("recall", "validation")  # shown in percent
_CHOSEN = "chosen"
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 72rem; margin: 2rem auto;
       padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
.verdict { font-size: 1.2rem; font-weight: 600; border-left: 0.4rem solid #1040ff; padding: 0.4rem 0 0.4rem 1rem; }
figure { margin: 1.5rem 0; } img { max-width: 100%; height: auto; } figcaption { color: #444; }
table { border-collapse: collapse; } th, td { border-bottom: 1px solid #ccc; padding: 0.3rem 1rem 0.3rem 0;
       text-align: left; vertical-align: top; white-space: pre-line; }
th { overflow-wrap: normal; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.chosen { background: #e6f5e6; font-weight: 600; }
""".strip()


def check_report(path: Path) -> None:
    """Raise CairnError if no report can be written to a path; called before the work."""
    check_html(path, "report")
    require_matplotlib()


def write_report(
    path: Path,
    *,
    title: str,
    verdict: str,
    facts: dict[str, str],
    model: LearntModel,
    history: Sequence[LogEntry],
    tried: Sequence[dict[str, Any]],
    closeups: Sequence[Closeup],
) -> None:
    """Write a report atomically; the same content gives the same file. `tried`: rows of the table of models. The
    columns are all their keys; ``stage``, ``share``, ``mu``, ``gamma``, ``dim``, ``recall`` (None: not measured) and
    ``validation`` have titles, and ``chosen`` marks one row.
    """
    check_report(path)
    parts = [
        f"<h1>{_text(title)}</h1>",
        f'<p class="verdict">{_text(verdict)}</p>',
        "<h2>What was learnt from, and what came of it</h2>",
        _facts(facts),
        "<h2>Matches by geometry</h2>",
        *_closeups(closeups),
        "<h2>Pooling regions</h2>",
        _pooling(model),
        "<h2>Course of the optimisation</h2>",
        *_history(history),
        "<h2>Models tried</h2>",
        _models_table(tried),
    ]
    write_html(path, document(title, _STYLE, parts), "report")


def _facts(facts: dict[str, str]) -> str:
    rows = [f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in facts.items()]
    return "\n".join(["<table>", *rows, "</table>"])


def _closeups(closeups: Sequence[Closeup]) -> list[str]:
    if not closeups:
        return ["<p>No close-ups: no two photos that were found to show the same are at hand any more.</p>"]
    high, low = closeups[0].overlaps.high, closeups[0].overlaps.low
    parts = [
        "<p>A feature of one photo (blue) and some regions of another that shows the same. What counts is how much a "
        "region overlaps the feature once it is projected back by the map between the photos (dashed; the numbers are "
        f"intersection over union), and never what it looks like: above {high:g} it may be the match (green), below "
        f"{low:g} it is no match (red), and those between are left out (magenta).</p>"
    ]
    for closeup in closeups:
        numbers = {kind: sum(match.kind == kind for match in closeup.matches) for kind in KINDS}
        counts = ", ".join(f"{closeup.counts[kind]:,} {kind} ({numbers[kind]} shown)" for kind in KINDS)
        caption = (
            f"Left <strong>{_text(closeup.reference)}</strong>, right <strong>{_text(closeup.target)}</strong>. "
            f"Regions of the right photo: {counts}. {_map_sentence(closeup)}"
        )
        alternative = f"Close-up of {closeup.reference} and {closeup.target}"
        parts.append(_figure(closeup_figure(closeup), "jpg", alternative, caption))
    return parts


def _map_sentence(closeup: Closeup) -> str:
    if not closeup.inliers:
        return "The right one is a view of the left one that was rendered, so that the map is known."
    return f"{closeup.inliers:,} matches agree on the map between the photos."


def _pooling(model: LearntModel) -> str:
    pooling = model.pooling
    if pooling is None:
        return f"<p>None: {_text(model.name)} projects SIFT, and has no pooling regions of its own.</p>"
    drawn = pooling_figure(pooling.regions, pooling.weights, pooling.channels.patch_size / 2)
    rings = len(set(pooling.rings.tolist()))
    caption = (
        f"Left: the {len(pooling.regions)} Gaussian regions of {rings} rings over which gradients are pooled, as "
        "circles of one standard deviation, coloured by their weight. Right: how much each pixel of the patch "
        "contributes."
    )
    return _figure(drawn, "png", "Learnt pooling regions and the contribution of each pixel", caption)


def _history(history: Sequence[LogEntry]) -> list[str]:
    if not history:
        return ["<p>Not recorded.</p>"]
    if history[0].stage == STAGE:
        caption = (
            "Two steps take turns: the whitening is fitted to the K features that come nearest to their matches, and "
            "each feature takes its nearest positive as its match."
        )
        return [_figure(history_figure(history), "png", "Distance of matches, step by step", caption)]
    caption = (
        "Three steps take turns: parameters are learnt, each feature takes its nearest positive as its match, and the "
        "K features of least loss are selected. None of them raises the objective. Before each round (dotted lines) "
        "the negatives that come nearest are looked for; with others, it is another objective."
    )
    return [_figure(history_figure(history), "png", "Objective and recall, step by step", caption)]


def _models_table(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "<p>Not recorded.</p>"
    columns = list(dict.fromkeys(key for model in rows for key in model if key != _CHOSEN))
    lines = ["<table>", "<tr>"]
    for key in columns:
        kind = ' class="number"' if _numeric(rows, key) else ""
        lines.append(f'<th scope="col"{kind}>{_text(_HEADINGS.get(key, key.replace("_", " ")))}</th>')
    lines.append("</tr>")
    for model in rows:
        cells = []
        for key in columns:
            kind = ' class="number"' if _numeric(rows, key) else ""
            cells.append(f"<td{kind}>{_text(_value(key, model.get(key)))}</td>")
        lines.append(('<tr class="chosen">' if model.get(_CHOSEN) else "<tr>") + "".join(cells) + "</tr>")
    lines.append("</table>")
    if any(model.get(_CHOSEN) for model in rows):
        lines.append("<p>The marked one was chosen, by its recall on validation features.</p>")
    return "\n".join(lines)


def _numeric(rows: Sequence[dict[str, Any]], key: str) -> bool:
    return all(isinstance(model.get(key, 0), int | float | None) for model in rows)


def _value(key: str, value: Any) -> str:
    if value is None:
        return "–"
    if key in _SHARES:
        return f"{100 * value:.2f}%"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _figure(drawn: "Figure", kind: str, alternative: str, caption: str) -> str:
    """Return a picture and its caption, which is markup already, as HTML."""
    data = b64encode(image_bytes(drawn, kind)).decode()
    media = "jpeg" if kind == "jpg" else kind
    image = f'<img alt="{_text(alternative)}" src="data:image/{media};base64,{data}">'
    return f"<figure>\n{image}\n<figcaption>{caption}</figcaption>\n</figure>"


def _text(text: str) -> str:
    return escape(printable(text))
