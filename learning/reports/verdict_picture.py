"""Picture of the verdict on a descriptor learnt from a collection's own photos: an SVG file without scripts."""

from collections.abc import Mapping
from html import escape
from typing import Any

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT = 165, 560  # of the bars
_STYLE = """
text { font: 15px system-ui, sans-serif; fill: #1c2224; }
.faint { fill: #566064; font-size: 13px; }
.paper { fill: #ffffff; }
.before { fill: #97a3a6; }
.after, .won { fill: #0b5f63; }
.lost { fill: #a3231c; }
.even { fill: #cdd3d4; }
@media (prefers-color-scheme: dark) {
text { fill: #e8ecec; }
.faint { fill: #a3afb1; }
.paper { fill: #1e2425; }
.before { fill: #66747a; }
.after, .won { fill: #79d0cb; }
.lost { fill: #ffb0a8; }
.even { fill: #353e40; }
}
"""


def draw_verdict(verdict: Mapping[str, Any]) -> str:
    """Draw the precision of searches before and after, and numbers won and lost, or a note: SVG, 640 × 300 pixels."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(str(verdict['sentence']))}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{_HEIGHT}"/>',
    ]
    searches, before, after = verdict["searches"], verdict["before"], verdict["after"]
    if searches is None or after is None or not searches["queries"] or before["map"] is None or after["map"] is None:
        parts.append(_text(_WIDTH / 2, _HEIGHT / 2, "No searches could be measured", anchor="middle"))
        return "\n".join([*parts, "</svg>"])
    queries, scenes = searches["queries"], searches["scenes"]
    earlier, learnt = before["descriptor"], after["descriptor"]
    parts += [
        _text(20, 28, f"Mean average precision; searches: {queries:,}, in held-out scenes: {scenes:,}", kind="faint"),
        _text(20, 64, "Verified searches"),
        *_row(48, before["map"]["verified"], after["map"]["verified"], searches["verified"], queries),
        _text(20, 174, "By words alone"),
        *_row(158, before["map"]["words"], after["map"]["words"], searches["words"], queries),
        _box(20, 272, 12, "before"),
        _text(38, 283, f"before: {earlier}", kind="faint"),
        _box(250, 272, 12, "after"),
        _text(268, 283, f"learnt: {learnt}", kind="faint"),
        _box(480, 272, 12, "lost"),
        _text(498, 283, "found less", kind="faint"),
    ]
    return "\n".join([*parts, "</svg>"])


def _row(top: int, before: float, after: float, searches: Mapping[str, Any], queries: int) -> list[str]:
    """Two bars of precision, and one of searches won, equal and lost."""
    width = _RIGHT - _LEFT
    margin = searches["standard_error"]
    change = f"{100 * searches['difference']:+.1f}" + (f" ± {196 * margin:.1f}" if margin is not None else "")
    parts = [_text(20, top + 38, f"{change} points", kind="faint")]
    for place, (share, kind) in enumerate(((before, "before"), (after, "after"))):
        y = top + 24 * place
        parts.append(_box(_LEFT, y, width, "even", 20))
        parts.append(_box(_LEFT, y, width * share, kind, 20))
        parts.append(_text(_RIGHT + 10, y + 15, f"{100 * share:.1f}"))
    won, lost = searches["won"] or 0, searches["lost"] or 0
    y = top + 56
    parts.append(_text(20, y + 13, "Searches", kind="faint"))
    at = float(_LEFT)
    for count, kind in ((won, "won"), (queries - won - lost, "even"), (lost, "lost")):
        parts.append(_box(at, y, width * count / queries, kind, 16))
        at += width * count / queries
    parts.append(_text(_LEFT, y + 32, f"{won:,} found more", kind="faint"))
    parts.append(_text(_RIGHT, y + 32, f"{lost:,} found less", kind="faint", anchor="end"))
    return parts


def _box(x: float, y: float, width: float, kind: str, height: float = 12) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" height="{height:.1f}"/>'


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    # The server translates it: `text` is one literal, which scripts/languages.py looks for.
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
