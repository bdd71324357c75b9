"""Options of running experiments again."""

from dataclasses import dataclass
from typing import Annotated

from index.options.declaration import Option
from index.options.panels import DATA, RUNNING
from index.parallel import WORKERS


@dataclass(frozen=True)
class ReproduceOptions:
    """Scale, runs and processes of experiments."""

    scale: Annotated[
        float,
        Option(
            "Share of pairs, queries and photos, to see that all works; its numbers cannot be compared.",
            DATA,
            metavar="SHARE",
        ),
    ] = 1.0
    seeds: Annotated[
        int,
        Option(
            "Run all that is random so many times, each with other seeds: tables then have the mean, and ± the "
            "standard deviation. Plots are of the first run.",
            RUNNING,
            least=1,
            most=100,
        ),
    ] = 1
    workers: Annotated[int, WORKERS] = 0
