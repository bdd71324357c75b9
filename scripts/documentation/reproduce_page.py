#!/usr/bin/env python3
"""Write docs/how-to/reproduce.md, with all experiments: python -m scripts.documentation.reproduce_page"""

from pathlib import Path

from eval.papers.registry import experiments
from eval.reproduce.pages import DIFFERS
from eval.reproduce.plan import Cell, Experiment, Table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "reproduce.md"

_BEFORE = """# Reproducing the papers

<!-- Written by scripts/documentation/reproduce_page.py out of the experiments themselves: change those, and run it. -->

```
cairn reproduce list                                          # every table and figure, its data, its time
cairn data get phototour --root sets                          # what it needs
cairn reproduce simonyan14/table1 --root sets                 # one of them
cairn reproduce brown11 --root sets                           # all of a paper
cairn reproduce all --root sets --scale 0.001                 # a smoke test of everything
cairn reproduce yan13/table2 --root sets --dry-run            # the commands that are left to run
cairn reproduce simonyan14/table2 --root sets --seeds 3       # three runs: their mean, and ± their standard deviation
```

An experiment is a list of commands of Cairn, as anybody could type them: `--dry-run` prints them, and the page of a
result ends with them. What experiments have in common is computed once, in `cairn-reproduced/steps` (`--out`). A run
that was stopped goes on where it was, inside a command too. Each experiment becomes a page,
`cairn-reproduced/NAME.html`, with our numbers next to the published ones, its plots, where it differs from the paper,
and the same numbers as CSV and JSON.

`--seeds 3` runs all that is random three times, each with other seeds: training and validation pairs, matches, codes,
vocabularies. Tables then have the mean and, after ±, the sample standard deviation; plots, and what stands in square
brackets, are of the first run. Yan13's learnt numbers are means over five runs without that, as the paper's are over
several.

All numbers that commands print go into `cairn-reproduced/log.jsonl` as soon as a command has ended: a line each, with
`time`, `experiment`, `step`, `key`, `name`, `at` (its place in a list, such as an iteration) and `value`.

```python
import pandas

log = pandas.read_json("cairn-reproduced/log.jsonl", lines=True)
log[log.name == "printed.history.test"].pivot_table(index="at", columns="step", values="value").plot()

from torch.utils.tensorboard import SummaryWriter  # the same for TensorBoard

with SummaryWriter("runs") as writer:
    for row in log.itertuples():
        writer.add_scalar(f"{row.step}/{row.name}", row.value, 0 if pandas.isna(row.at) else int(row.at))

import wandb  # and for Weights & Biases: a run for each step

for (key, step), rows in log.groupby(["key", "step"]):
    run = wandb.init(project="cairn", name=step, reinit=True)
    for row in rows.itertuples():
        run.log({row.name: row.value} if pandas.isna(row.at) else {row.name: row.value, "at": row.at})
    run.finish()
```

`--scale 0.05` takes that share of the pairs, queries and photos, to see that all works. Below 0.01 the grids of models
are small too. Such numbers say nothing about the papers, and the page says so.

Cairn's authors do not have the published sets. So the numbers of the papers below stand without ours; the experiments
themselves are tested on tiny sets in the layouts of the published ones. Numbers in *italics* are of methods that are
not built here. Times are estimates for two cores, of each experiment alone, and rough: from what the commands took on
shares of sets of the same kind.

## Which SIFT ours should match

The papers print three errors of SIFT on the same test pairs, of three programs:

| percent at 95% recall | Notre Dame | Yosemite | Liberty | which SIFT |
|---|---|---|---|---|
| Brown11, tables I to V | 26.10 | 28.50 | 35.09 | Lowe's program, over the part of a patch that does best |
| Trzcinski12, figures 3 and 4 | 28.09 | | 36.27 | Vedaldi's siftpp; over how much of the patch is not said |
| Simonyan14, table 2 | 22.06 | 26.71 | 29.65 | rootSIFT; the program is not said |

Cairn has one SIFT, in the layout of VLFeat (4 x 4 bins of a fifth of the patch's side each). `--descriptor sift` over
the whole patch is to be held against Trzcinski12, and `--descriptor rootsift` against Simonyan14. With the
`--footprint` that `cairn evaluate footprint liberty` finds best it is to be held against Brown11, and `brown11/…` do
so. The differences between the rows are those of the three programs: where ours comes near its own row, patches,
pairs and measure are those of the papers. We have not measured this, as we do not have the sets.

## What is there

Figures 8, 11 and 14 of Brown11 are with its figures 7, 10 and 13. Three are left out, for which there is no command:
its figure 9 (learnt summation regions) and figure 15 (pairs that are classified wrongly), and Yan13's table I (photos,
objects and positives of each set). So are drawings of how a method works, and Brown11's rows of synthetic jitter.

What the papers leave open, and what `--as-published` sets, is described in [learning](learning.md#as-published) and
[measuring](measuring.md#as-a-paper-did).
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole page."""
    known = list(experiments().values())
    lines = [_BEFORE, "| experiment | shows | data | commands | time |", "|---|---|---|---|---|"]
    for one in known:
        link = f"[`{one.name}`](#{one.name.replace('/', '')})"
        lines.append(f"| {link} | {one.title} | {', '.join(one.data)} | {len(one.steps)} | {duration(one.hours)} |")
    for one in known:
        lines += ["", *_section(one)]
    return "\n".join(lines) + "\n"


def duration(hours: float) -> str:
    """Hours in words."""
    if hours < 1:
        return f"{max(1, round(60 * hours))} min"
    return f"{hours:.0f} h" if hours < 48 else f"{hours / 24:.0f} days"


def _section(experiment: Experiment) -> list[str]:
    lines = [
        f"## {experiment.name}",
        "",
        f"{experiment.title}. {experiment.source}. `cairn reproduce {experiment.name} --root DIR`",
    ]
    for part in experiment.parts:
        if isinstance(part, Table) and any(_is_published(cell) for cell in part.cells):
            lines += ["", f"Published: {part.title}. {part.unit}.", "", *_published(part)]
    lines += ["", f"{DIFFERS}:", "", *(f"- {sentence}" for sentence in experiment.differs)]
    if experiment.notes:
        lines += ["", "Notes:", "", *(f"- {note}" for note in experiment.notes)]
    return lines


def _is_published(cell: Cell) -> bool:
    return cell.published is not None or cell.published_detail is not None


def _published(table: Table) -> list[str]:
    """The published numbers of a table, in italics for methods not implemented here."""
    lines = [f"| | {' | '.join(table.columns)} |", f"|---|{'---|' * len(table.columns)}"]
    for row in table.rows:
        by_column = {cell.column: cell for cell in table.cells if cell.row == row}
        cells = []
        for column in table.columns:
            cell = by_column.get(column)
            if cell is None or not _is_published(cell):
                cells.append("")
                continue
            number = "–" if cell.published is None else f"{cell.published:.{table.digits}f}"
            detail = "" if cell.published_detail is None else f" [{cell.published_detail:g}]"
            if cell.published_spread is not None:
                detail = f" ± {cell.published_spread:.{table.digits}f}{detail}"
            cells.append(f"{number if cell.ours is not None else f'*{number}*'}{detail}")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
