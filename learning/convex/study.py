"""A study: models of grids of settings, learnt a few at a time, stored at once, and resumable."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from index.parallel import run
from index.progress import Progress
from learning.convex.records import Kind, ModelRecords

Trial = tuple[str, Callable[[], list[tuple[Kind, NDArray[np.float64]]]]]
"""One setting: its key in the records, and a function that learns its models in any process."""


class Study(Generic[Kind]):
    """The grids of one run. No model is begun after `hours` of its stage since the start; 0: no limit."""

    def __init__(self, records: ModelRecords[Kind], hours: dict[str, float], workers: int, progress: Progress) -> None:
        self.records = records
        self.tried: list[Kind] = []
        self._hours = hours
        self._workers = workers
        self._tell = progress
        self._began = perf_counter()

    def learn(self, stage: str, grid: Sequence[Trial[Kind]], enough: Callable[[list[Kind]], bool]) -> list[Kind]:
        """Learn the missing models of a grid, as long as there is time; return all models of it."""
        missing = [trial for trial in grid if not self.records.of(trial[0])]
        done = len(grid) - len(missing)
        self._tell(stage, done, len(grid))
        earlier = [record for record in self.tried if record.stage == stage]
        while missing:
            late = 0 < 3600 * self._hours[stage] < perf_counter() - self._began
            if late and enough(earlier + self._of(grid)):
                break
            batch, missing = missing[: self._workers], missing[self._workers :]
            models = run([learn for _, learn in batch], self._workers)
            self.records.add([model for results in models for model in results])
            done += len(batch)
            self._tell(stage, done, len(grid))
        results = self._of(grid)
        self.tried += results
        return results

    def _of(self, grid: Sequence[Trial[Kind]]) -> list[Kind]:
        return [record for key, _ in grid for record in self.records.of(key)]
