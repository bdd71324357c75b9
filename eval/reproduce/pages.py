"""Pages of experiments with tables and plots, and the same numbers as CSV and JSON."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from eval.reproduce.measures import Measure, Results
from eval.reproduce.plan import Drawing, Experiment, Plot, Series, Table
from eval.reproduce.running import Bench, printed
from index.arrays import load_json, save_json, save_rows
from index.errors import CairnError
from learning.reports.figures import image_bytes, new_figure, require_matplotlib
from learning.reports.html import document, write_html

CONTENTS = "index.html"
"""Page of contents of the experiments."""
_STYLE = """
:root { color-scheme: light dark; --line: #ccc; --soft: #666; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #aaa; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
       overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
.warning { font-weight: 600; border-left: 0.4rem solid #c60; padding: 0.4rem 0 0.4rem 1rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--line); padding: 0.3rem 1rem 0.3rem 0; text-align: left; vertical-align: top; }
td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.published { color: var(--soft); } pre { white-space: pre-wrap; font-size: 0.85rem; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; height: auto; background: #fff; }
""".strip()
DIFFERS = "Where this differs from the paper"
"""Heading of the differences from the paper."""

_TYPES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg"}


@dataclass(frozen=True)
class Outcome:
    """A finished experiment."""

    experiment: Experiment  # the experiment
    results: Mapping[str, Mapping[str, Any]]  # see `eval.reproduce.running.run_steps`
    share: float  # the scale
    version: str  # version of the program

    @property
    def printed(self) -> Results:
        """The output of each step, by its key."""
        return printed(self.results)

    @property
    def seconds(self) -> float:
        """Total time of its steps, including those shared with earlier experiments."""
        return float(sum(self.results[step.key]["seconds"] for step in self.experiment.steps))

    def as_json(self) -> dict[str, Any]:
        """Return all numbers, as in the file next to the page."""
        parts = self.experiment.parts
        return {
            "experiment": self.experiment.name,
            "title": self.experiment.title,
            "source": self.experiment.source,
            "scale": self.share,
            "cairn": self.version,
            "seconds": round(self.seconds, 1),
            "tables": [
                {"title": part.title, "unit": part.unit, "cells": self._cells(part)}
                for part in parts
                if isinstance(part, Table)
            ],
            "plots": [
                {"title": part.title, "x": part.x, "y": part.y, "series": self._series(part)}
                for part in parts
                if isinstance(part, Plot)
            ],
            "differs": list(self.experiment.differs),
            "notes": list(self.experiment.notes),
            "steps": [
                {
                    "title": step.title,
                    "command": self.results[step.key]["command"],
                    "seconds": self.results[step.key]["seconds"],
                }
                for step in self.experiment.steps
            ],
        }

    def _cells(self, table: Table) -> list[dict[str, Any]]:
        cells = []
        for cell in table.cells:
            ours = self._of(cell.ours)
            difference = None if ours is None or cell.published is None else ours - cell.published
            cells.append(
                {
                    "row": cell.row,
                    "column": cell.column,
                    "ours": _rounded(ours),
                    "published": cell.published,
                    "difference": _rounded(difference),
                    "detail": _rounded(self._of(cell.detail)),
                    "published_detail": cell.published_detail,
                    "spread": _rounded(self._of(cell.spread)),
                    "published_spread": cell.published_spread,
                }
            )
        return cells

    def _series(self, plot: Plot) -> list[dict[str, Any]]:
        return [
            {
                "label": series.label,
                "points": [list(point) for point in self.points(series)],
                "published": [list(point) for point in series.published],
                "level": _rounded(self._of(series.level)),
            }
            for series in plot.series
        ]

    def points(self, series: Series) -> list[tuple[float, float]]:
        """Return the known points of a line."""
        if series.listed is not None:
            return series.listed.of(self.printed)
        points = [(self._of(x) if isinstance(x, Measure) else x, self._of(y)) for x, y in series.points]
        return [(x, y) for x, y in points if x is not None and y is not None]

    def _of(self, measure: Measure | None) -> float | None:
        return None if measure is None else measure.of(self.printed)


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 6)


def check_pages(experiments: Sequence[Experiment]) -> None:
    """Raise CairnError if a plot could not be drawn in the end; called before the work."""
    if any(isinstance(part, Plot | Drawing) for one in experiments for part in one.parts):
        require_matplotlib()


def write_outcome(outcome: Outcome, bench: Bench, folder: Path) -> Path:
    """Write the page of an experiment, with its CSV and JSON next to it; return the page."""
    page = folder / f"{outcome.experiment.name}.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    result = outcome.as_json()
    save_json(page.with_suffix(".json"), result)
    save_rows(page.with_suffix(".csv"), _rows(result))
    write_html(page, _page(outcome, result, bench), "page")
    return page


def write_contents(outcomes: Sequence[Outcome], folder: Path) -> Path:
    """Write a page of contents of several experiments, including those of earlier runs in the same folder."""
    titles = {name: (title, share) for name, title, share in _experiments_in(folder)}
    titles |= {one.experiment.name: (one.experiment.title, one.share) for one in outcomes}
    lines = [
        f'<li><a href="{escape(name)}.html">{escape(name)}</a>: {escape(title)}{_share(share)}</li>'
        for name, (title, share) in sorted(titles.items(), key=lambda one: _in_order(one[0]))
    ]
    page = folder / CONTENTS
    folder.mkdir(parents=True, exist_ok=True)
    contents = ["<h1>Experiments</h1>", "<ul>", *lines, "</ul>"]
    write_html(page, document("Experiments", _STYLE, contents), "page")
    return page


def _experiments_in(folder: Path) -> Iterator[tuple[str, str, float]]:
    """Name, title and scale of the experiments with pages in a folder."""
    for page in folder.glob("*/*.html"):
        try:
            result = load_json(page.with_suffix(".json"))
            yield str(result["experiment"]), str(result["title"]), float(result["scale"])
        except (CairnError, LookupError, TypeError, ValueError):
            continue  # not the page of an experiment


def _in_order(name: str) -> list[tuple[int, str]]:
    """Sort key of names of experiments: figure10 after figure9."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", name)]


def _share(share: float) -> str:
    return "" if share == 1 else f" (scale {share:g})"


def _rows(result: Mapping[str, Any]) -> Iterator[list[Any]]:
    extra = ("detail", "published_detail", "spread", "published_spread")
    none = [""] * len(extra)
    yield ["part", "row", "column", "ours", "published", "difference", "unit", *extra]
    for table in result["tables"]:
        for cell in table["cells"]:
            values = [cell[name] for name in ("row", "column", "ours", "published", "difference")]
            yield [table["title"], *values, table["unit"], *(cell[name] for name in extra)]
    for plot in result["plots"]:
        for series in plot["series"]:
            for x, y in series["points"]:
                yield [plot["title"], series["label"], x, y, "", "", plot["y"], *none]
            for x, y in series["published"]:
                yield [plot["title"], series["label"], x, "", y, "", plot["y"], *none]
            if series["level"] is not None:
                yield [plot["title"], series["label"], "", series["level"], "", "", plot["y"], *none]


def _page(outcome: Outcome, result: Mapping[str, Any], bench: Bench) -> str:
    experiment = outcome.experiment
    parts = [f"<h1>{escape(experiment.title)}</h1>", f"<p>{escape(experiment.source)}</p>"]
    if outcome.share != 1:
        parts.append(
            f'<p class="warning">Run at the scale {outcome.share:g}: a small share of the data, to see that all works. '
            "Its numbers cannot be compared with the published ones.</p>"
        )
    tables = {table["title"]: table["cells"] for table in result["tables"]}
    for part in experiment.parts:
        parts.append(f"<h2>{escape(part.title)}</h2>")
        if isinstance(part, Table):
            parts.append(_table(part, tables[part.title]))
        elif isinstance(part, Plot):
            parts.append(_image("image/png", _plot_bytes(part, outcome), part.title))
        else:
            parts.append(_picture(part, bench))
    for heading, sentences in ((DIFFERS, experiment.differs), ("Notes", experiment.notes)):
        if sentences:
            parts.append(f"<h2>{heading}</h2><ul>{''.join(f'<li>{escape(one)}</li>' for one in sentences)}</ul>")
    commands = "\n".join(f"# {step['title']}: {step['seconds']:.0f} s\n{step['command']}" for step in result["steps"])
    parts.append(
        f"<h2>Commands</h2><p>Cairn {escape(outcome.version)}; {outcome.seconds / 3600:.2f} hours of commands, those "
        f"shared with other experiments with them.</p><pre>{escape(commands)}</pre>"
    )
    return document(experiment.title, _STYLE, parts)


def _table(table: Table, cells: Sequence[Mapping[str, Any]]) -> str:
    """A table in HTML, with each of our numbers above the published one."""
    by_place = {(cell["row"], cell["column"]): cell for cell in cells}
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = []
    for row in table.rows:
        numbers = "".join(
            f'<td class="number">{_cell(by_place.get((row, name)), table)}</td>' for name in table.columns
        )
        rows.append(f'<tr><th scope="row">{escape(row)}</th>{numbers}</tr>')
    return (
        f"<p>{escape(table.unit)}{table.better and f'; {table.better} is better'}. First ours, then the published "
        "number and, in brackets, by how much ours is above it; ± is the standard deviation over several runs.</p>"
        '<div class="scroll"><table>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _cell(cell: Mapping[str, Any] | None, table: Table) -> str:
    if cell is None:
        return ""
    ours = "–"
    if cell["ours"] is not None:
        ours = (
            f"<strong>{cell['ours']:.{table.digits}f}</strong>{_spread(cell['spread'], table)}{_detail(cell['detail'])}"
        )
    if cell["published"] is None and cell["published_detail"] is None:
        return ours
    difference = "" if cell["difference"] is None else f" ({cell['difference']:+.{table.digits}f})"
    known = "–" if cell["published"] is None else f"{cell['published']:.{table.digits}f}"
    published = f"{known}{_spread(cell['published_spread'], table)}{_detail(cell['published_detail'])}"
    return f'{ours}<br><span class="published">{published}{difference}</span>'


def _detail(detail: float | None) -> str:
    return "" if detail is None else f" <small>[{detail:g}]</small>"


def _spread(spread: float | None, table: Table) -> str:
    return "" if spread is None else f" ± {spread:.{table.digits}f}"


def _plot_bytes(plot: Plot, outcome: Outcome) -> bytes:
    figure = new_figure(8, 5)
    axes = figure.add_subplot()
    colour: Any = "C0"
    for series in plot.series:
        level = None if series.level is None else series.level.of(outcome.printed)
        if series.level is not None:
            if level is not None:
                axes.axhline(level, color=colour, linestyle="--", label=series.label)
            continue
        line = axes.plot(*_columns(outcome.points(series)), marker="o", markersize=4, label=series.label)[0]
        colour = line.get_color()
        if series.published:
            label = f"{series.label}, published"
            axes.plot(*_columns(series.published), "x:", color=colour, label=label)
    if plot.log_x:
        axes.set_xscale("log", base=2)
    axes.set(xlabel=plot.x, ylabel=plot.y)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    return image_bytes(figure)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _picture(picture: Drawing, bench: Bench) -> str:
    path = bench.home(picture.step) / picture.name
    return _image(_TYPES[path.suffix], path.read_bytes(), picture.title)


def _image(kind: str, contents: bytes, title: str) -> str:
    data = b64encode(contents).decode()
    return f'<figure><img src="data:{kind};base64,{data}" alt="{escape(title, quote=True)}"></figure>'
