"""A page for inspecting failures: each query's box and ranking as thumbnails, in one HTML file."""

from html import escape
from pathlib import Path

from eval.rankings.curves import curves_of, interpolated
from eval.rankings.drawings import boxed_photo, curve_drawing, strip_drawing
from eval.rankings.names import plain_name
from eval.rankings.photos import PhotoFiles, PreviewPicture, picture
from eval.rankings.scoring import RankingReport, ScoredQuery
from index.progress import Progress, silent
from index.text import printable_name
from learning.reports.html import check_html, document, write_html

SHOWN = 20
"""Number of top photos of a ranking shown; and of further positives."""

_THUMBNAIL, _QUERY = 132, 260  # longer sides, pixels
_KINDS = {"right": "✓", "wrong": "✗", "junk": "–"}
_STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --paper: #fff; --soft: #5b5b60; --rule: #d3d3d8; --right: #15803d;
        --wrong: #c81e1e; --junk: #85858c; --line: #1d4ed8; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececf0; --paper: #16171a; --soft: #a9a9b2; --rule: #3b3c42;
        --right: #3fc56b; --wrong: #ff6b61; --junk: #85858c; --line: #82b1ff; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 82rem;
       margin: 1.5rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; } h3 { font-size: 1.05rem; margin: 0 0 .4rem; }
article { border-top: 1px solid var(--rule); padding: 1.2rem 0; }
.top { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-end; }
.photos { display: flex; flex-wrap: wrap; gap: .5rem; margin: .7rem 0; }
figure { margin: 0; width: 142px; }
.photo { display: flex; align-items: center; justify-content: center; min-height: 60px; border: 4px solid var(--junk);
         border-radius: 4px; color: var(--soft); font-size: .8rem; background: var(--rule); }
.photo i { display: block; background-size: cover; print-color-adjust: exact; }
.right .photo { border-color: var(--right); } .wrong .photo { border-color: var(--wrong); }
.right b { color: var(--right); } .wrong b { color: var(--wrong); } .junk b { color: var(--junk); }
figcaption, .facts, .names { font-size: .8rem; color: var(--soft); } .names { margin: .2rem 0; }
svg { max-width: 100%; } svg text { font-size: 11px; fill: var(--soft); }
.field { fill: none; stroke: var(--rule); } .line { fill: none; stroke: var(--line); stroke-width: 2; }
.axis { stroke: var(--rule); } .mark { stroke: var(--right); stroke-width: 2; }
.box { fill: none; stroke: #ffd400; } table { border-collapse: collapse; }
th, td { text-align: left; padding: .2rem 1.2rem .2rem 0; border-bottom: 1px solid var(--rule); }
""".strip()


def check_page(path: Path) -> None:
    """Raise a CairnError if no page can be written to a path; called before the work."""
    check_html(path, "page")


def write_page(
    path: Path,
    report: RankingReport,
    photos: PhotoFiles,
    *,
    title: str,
    facts: dict[str, str] | None = None,
    progress: Progress = silent,
) -> None:
    """Write a page of rankings atomically. The same content gives the same file."""
    check_page(path)
    draw = _Drawing(photos)
    total = sum(map(len, report.protocols.values()))
    body = [f"<h1>{_text(title)}</h1>", *_head(report, facts or {})]
    done = 0
    for protocol, scores in report.protocols.items():
        if len(report.protocols) > 1:
            body.append(f"<h2>{_text(protocol)}: mAP {report.mean(protocol):.4f}</h2>")
        for score in sorted(scores, key=lambda score: (score.ap, score.query.name)):
            body.append(draw.query(score))
            done += 1
            progress("page", done, total)
    write_html(path, document(title, f"{_STYLE}\n{draw.style()}", body), "page")


def _head(report: RankingReport, facts: dict[str, str]) -> list[str]:
    rows = {
        f"mAP{f', {name}' if len(report.protocols) > 1 else ''}": f"{report.mean(name):.4f} over {len(scores)} queries"
        for name, scores in report.protocols.items()
    }
    rows |= {**({"ranking": report.source} if report.source else {}), **facts}
    table = "".join(
        f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in rows.items()
    )
    curves = "".join(
        curve_drawing(curves_of(scores).mean, f"Mean precision against recall, {printable_name(name)}")
        for name, scores in report.protocols.items()
    )
    notes = [f"<p>{_text(sentence)}</p>" for sentence in report.notes]
    key = (
        '<p class="facts">The worst queries come first. ✓ green: right; ✗ red: wrong; – grey: junk, which takes no '
        "rank. Precision is interpolated: the largest at a recall or any beyond.</p>"
    )
    return [f'<div class="top"><table>{table}</table>{curves}</div>', *notes, key]


class _Drawing:
    """Draws queries; each thumbnail is in the page once, as a CSS class."""

    def __init__(self, photos: PhotoFiles) -> None:
        self._photos = photos
        self._classes: dict[Path, tuple[str, PreviewPicture] | None] = {}

    def style(self) -> str:
        known = [entry for entry in self._classes.values() if entry is not None]
        return "\n".join(f".{name} {{ {_sized(small)} background-image: url({small.uri}); }}" for name, small in known)

    def query(self, score: ScoredQuery) -> str:
        query, ranks = score.query, score.ranks
        first = set(score.photos[:SHOWN])
        behind = {name: rank for name, rank in ranks.items() if name not in first}
        caption = (
            f"{len(ranks)} of {len(query.positives)} positives in a ranking of {len(score.photos):,}, "
            f"{len(ranks) - len(behind)} among the first {SHOWN}; {len(query.junk)} junk"
            if score.is_ranked
            else "no ranking"
        )
        later = [*behind.items(), *((name, None) for name in score.missed)]
        curve = interpolated(score.hits, len(query.positives))
        parts = [
            f'<div class="top">{self._query_photo(score)}{curve_drawing(curve, "Precision against recall")}'
            f"<div><h3>{_text(query.name)}: AP {score.ap:.4f}</h3>"
            f'<p class="facts">{caption}</p>'
            f"{strip_drawing(ranks.values(), len(score.hits), 'Ranks of the positives')}</div></div>",
            f'<div class="photos">{"".join(self._ranked(score))}</div>',
        ]
        if later:
            drawn = "".join(self._figure(name, "right", _rank(rank)) for name, rank in later[:SHOWN])
            parts.append(
                f'<p class="names">Positives that come later or not at all:</p><div class="photos">{drawn}</div>'
            )
        if rest := later[SHOWN:]:
            names = ", ".join(f"{_text(name)} ({_rank(rank)})" for name, rank in rest)
            parts.append(f'<p class="names">And {len(rest)} more: {names}</p>')
        return f"<article>{''.join(parts)}</article>"

    def _query_photo(self, score: ScoredQuery) -> str:
        path = self._photos.find(score.query.stem)
        drawn = picture(path, _QUERY) if path is not None else None
        if drawn is None:
            return f'<div class="photo">{_text(score.query.stem)}</div>'
        return boxed_photo(drawn, score.query.box, _QUERY, f"The query {printable_name(score.query.name)}")

    def _ranked(self, score: ScoredQuery) -> list[str]:
        rank = 0
        figures = []
        for name in score.photos[:SHOWN]:
            is_junk = name in score.query.junk
            kind = "junk" if is_junk else "right" if name in score.query.positives else "wrong"
            rank += not is_junk
            figures.append(self._figure(name, kind, "junk" if is_junk else str(rank)))
        return figures

    def _figure(self, name: str, kind: str, text: str) -> str:
        known = self._class(self._photos.find(name))
        inner = f'<i class="{known}" role="img" aria-label="{_text(name)}"></i>' if known else "not there"
        plain = plain_name(name)
        caption = f"<b>{_KINDS[kind]} {text}</b> {_text(plain if len(plain) <= 60 else f'…{plain[-59:]}')}"
        figure = f'<div class="photo">{inner}</div><figcaption>{caption}</figcaption>'
        return f'<figure class="{kind}" title="{_text(name)}">{figure}</figure>'

    def _class(self, path: Path | None) -> str | None:
        """The CSS class of a photo; None if it cannot be shown."""
        if path is None:
            return None
        if path not in self._classes:
            small = picture(path, _THUMBNAIL)
            self._classes[path] = None if small is None else (f"p{len(self._classes)}", small)
        entry = self._classes[path]
        return entry[0] if entry is not None else None


def _sized(small: PreviewPicture) -> str:
    scale = _THUMBNAIL / max(small.width, small.height)
    return f"width: {small.width * scale:.0f}px; height: {small.height * scale:.0f}px;"


def _rank(rank: int | None) -> str:
    return "not ranked" if rank is None else f"{rank:,}"


def _text(text: str) -> str:
    return escape(printable_name(text), quote=True)
