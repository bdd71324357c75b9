"""Machines needed by a search over shards: a queueing simulation of measured service times.

Run as `python -m scripts.cluster_simulation [--measured FILE]`, with the output of `tests.benchmarks.bench_shards
--json FILE`; by default the times below are used, from that benchmark. Queries arrive at random (a Poisson process). A
front takes a query, describes it, and calls all workers in several rounds: to count votes, to score, to verify the best
in batches, to rank. Each worker processes calls in order of arrival, and the front continues after the last answer. A
message costs processor time of the front and the worker, and has a latency. Service times vary by a log-normal factor.
Workers hold equal shards.
"""

import argparse
import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

MOST = 3_000  # numbers of workers to try


@dataclass(frozen=True)
class Measured:
    """Milliseconds of processor time, and counts of a query."""

    count_fixed: float = 20.0  # of a worker, to count votes
    count_photo: float = 0.0006  # the same for each photo of its shard
    score_fixed: float = 1.0  # to share votes and return the best
    score_photo: float = 0.00002
    rank_fixed: float = 0.5  # to return the ranked photos
    rank_photo: float = 0.00001
    verify_photo: float = 1.0  # to verify one photo
    verified: float = 60.0  # photos to verify
    batches: int = 2  # of verification
    front: float = 30.0  # of the front, messages aside
    front_message: float = 0.6  # of the front, for a message and its answer
    worker_message: float = 0.6  # of the worker
    way: float = 0.2  # round-trip latency without processor time
    spread: float = 0.15  # standard deviation of the logarithm of service times

    @staticmethod
    def of(results: Sequence[dict[str, Any]], photos: int) -> "Measured":
        """Fit the times to results of `bench_shards` with several numbers of shards."""
        shards = np.array([one["shards"] for one in results], float)
        design = np.column_stack([shards, np.ones(len(shards))])

        def fit(*names: str) -> tuple[float, float]:
            """Of all workers together: cost of each worker, and of each photo."""
            total = [sum(one["in_process"]["calls_ms"].get(name, 0.0) for name in names) for one in results]
            fixed, every = np.linalg.lstsq(design, np.array(total), rcond=None)[0]
            return max(0.0, float(fixed)), max(0.0, float(every)) / photos

        defaults = Measured()
        count, score, rank = fit("begin"), fit("finish", "count_high"), fit("best", "count_low")
        verify = fit("verify")
        here, there = ([one[kind]["shared"] for one in results] for kind in ("in_process", "cluster"))
        messages = np.array([one["messages"] for one in there])
        extra = np.array([one["cpu_ms"] for one in there]) - np.array([one["cpu_ms"] for one in here])
        alone = [sum(one["in_process"]["calls_ms"].values()) for one in results]
        front = float(np.mean([one["cpu_ms"] - calls for one, calls in zip(here, alone, strict=True)]))
        front_extra = np.array([one["front_ms"] for one in there]) - front
        own = max(0.05, float(np.sum(front_extra * messages) / np.sum(messages**2)))
        both = max(own, float(np.sum(extra * messages) / np.sum(messages**2)))
        return replace(
            defaults,
            count_fixed=count[0],
            count_photo=count[1],
            score_fixed=score[0],
            score_photo=score[1],
            rank_fixed=rank[0],
            rank_photo=rank[1],
            verify_photo=verify[1] * photos / defaults.verified,
            front=front,
            front_message=own,
            worker_message=max(0.05, both - own),
        )


@dataclass(frozen=True)
class Fleet:
    """Processes that answer queries."""

    photos: int
    workers: int  # with shards, one core each
    fronts: int  # processes that take queries, one core each
    together: int = 1  # workers reached by one message of the front, for example via one process a machine


@dataclass(frozen=True)
class Waits:
    """Response times of queries, in milliseconds."""

    times: np.ndarray

    def share(self, percent: float) -> float:
        """A percentile."""
        return float(np.percentile(self.times, percent))


def simulate(measured: Measured, fleet: Fleet, rate: float, *, queries: int = 1500, seed: int = 0) -> Waits:
    """Simulate queries, and return their response times."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1000 / rate, queries))
    rounds = _rounds(measured, fleet)
    front_free = [0.0] * fleet.fronts
    worker_free = np.zeros(fleet.workers)
    # Events: time, serial, query, round; round -1 of a query that waits for a front.
    events: list[tuple[float, int, int, int]] = []
    waiting: list[int] = []
    times = np.full(queries, np.nan)
    serial = 0
    messages = -(-fleet.workers // fleet.together)

    def push(time: float, query: int, step: int) -> None:
        nonlocal serial
        serial += 1
        heapq.heappush(events, (time, serial, query, step))

    for query, time in enumerate(arrivals.tolist()):
        push(time, query, -1)
    idle = len(front_free)
    while events:
        now, _, query, step = heapq.heappop(events)
        if step == -1:
            if not idle:
                waiting.append(query)
                continue
            idle -= 1
            push(now + measured.front * _vary(rng, measured), query, 0)
        elif step == len(rounds):
            times[query] = now - arrivals[query]
            if waiting:
                push(now + measured.front * _vary(rng, measured), waiting.pop(0), 0)
            else:
                idle += 1
        else:
            fixed, several = rounds[step]
            work = (
                np.full(fleet.workers, fixed)
                if not several
                else fixed * rng.multinomial(several, np.full(fleet.workers, 1 / fleet.workers))
            )
            busy = work > 0
            sent = int(min(messages, busy.sum()))
            half = measured.front_message * sent / 2  # to send all; the same to read the answers
            # The front sends messages in sequence.
            order = np.minimum(np.arange(fleet.workers) // fleet.together, max(sent - 1, 0)) + 1
            at = now + measured.front_message / 2 * order + measured.way / 2
            ends = np.maximum(worker_free, at) + measured.worker_message
            ends += work * _vary(rng, measured, fleet.workers)
            worker_free = np.where(busy, ends, worker_free)
            last = float(ends[busy].max()) if busy.any() else now
            push(max(last + measured.way / 2 + measured.front_message / 2, now + 2 * half), query, step + 1)
    return Waits(times[queries // 10 :])


def _rounds(measured: Measured, fleet: Fleet) -> list[tuple[float, int]]:
    """Work of a worker in each round, in ms; or of a photo, and the number of photos shared among the workers."""
    held = fleet.photos / fleet.workers
    batch = max(1, round(measured.verified / measured.batches))
    return [
        (measured.count_fixed + measured.count_photo * held, 0),
        (measured.score_fixed + measured.score_photo * held, 0),
        *[(measured.verify_photo, batch)] * measured.batches,
        (measured.rank_fixed + measured.rank_photo * held, 0),
    ]


def _vary(rng: np.random.Generator, measured: Measured, size: int | None = None) -> Any:
    """Factors of service times whose mean is 1."""
    return np.exp(rng.normal(-(measured.spread**2) / 2, measured.spread, size))


def smallest(
    measured: Measured, photos: int, rate: float, goal: float, *, together: int = 1, queries: int = 250
) -> tuple[Fleet, Waits] | None:
    """Find the smallest number of workers with a median below a goal in milliseconds, or None."""
    number = 1.0
    while number <= MOST:
        fleet = Fleet(photos, round(number), _fronts(measured, round(number), rate, together), together)
        # Overload needs no simulation.
        busy = rate * sum(one for one, several in _rounds(measured, fleet) if not several) / 1000
        if busy < 0.9 and sum(one for one, several in _rounds(measured, fleet) if not several) < goal:
            waits = simulate(measured, fleet, rate, queries=queries)
            if waits.share(50) < goal:
                return fleet, waits
        number *= 1.3
    return None


def _fronts(measured: Measured, workers: int, rate: float, together: int) -> int:
    """Number of fronts for a load of at most a half."""
    messages = (3 + measured.batches) * measured.front_message * -(-workers // together)
    return max(2, int(np.ceil(2 * rate * (measured.front + messages + 100) / 1000)))


def table(measured: Measured, *, goal: float = 100.0, cores: int = 16) -> list[str]:
    """Table of the needs of some collections."""
    lines = [
        "| photos | queries/s | a message reaches | workers | photos each | fronts | machines | p50, ms | p95, ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for photos in (1_000_000, 10_000_000, 100_000_000):
        for rate in (1.0, 10.0):
            for together in (1, cores):
                workers = smallest(measured, photos, rate, goal, together=together)
                what = "one worker" if together == 1 else f"a machine of {cores} cores"
                start = f"| {photos:,} | {rate:g} | {what} |"
                if workers is None:
                    lines.append(f"{start} - | - | - | - | over {goal:g} | - |")
                    continue
                fleet, waits = workers
                machines = -(-(fleet.workers + fleet.fronts) // cores)
                lines.append(
                    f"{start} {fleet.workers:,} | {photos // fleet.workers:,} | {fleet.fronts} | {machines:,} | "
                    f"{waits.share(50):.0f} | {waits.share(95):.0f} |"
                )
    return lines


def main() -> None:
    """Print the times and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, help="what bench_shards --json wrote")
    parser.add_argument("--photos", type=int, default=100_000, help="of the collection that was measured")
    parser.add_argument("--goal", type=float, default=100.0, help="of the median, ms")
    parser.add_argument("--cores", type=int, default=16, help="of a machine")
    parser.add_argument("--message", type=float, help="processor time of a message instead, ms, at each end")
    parser.add_argument("--faster", type=float, default=1.0, help="how much faster a core is than the measured one")
    arguments = parser.parse_args()
    measured = Measured()
    if arguments.measured:
        measured = Measured.of(json.loads(arguments.measured.read_text()), arguments.photos)
    if arguments.message is not None:
        measured = replace(measured, front_message=arguments.message, worker_message=arguments.message)
    measured = faster(measured, arguments.faster)
    print(", ".join(f"{one.name} {getattr(measured, one.name):.3g}" for one in fields(Measured)))
    print("\n".join(table(measured, goal=arguments.goal, cores=arguments.cores)))


def faster(measured: Measured, factor: float) -> Measured:
    """Times of a processor that is `factor` times as fast."""
    unchanged = {"verified", "batches", "way", "spread"}
    return replace(
        measured,
        **{one.name: getattr(measured, one.name) / factor for one in fields(Measured) if one.name not in unchanged},
    )


if __name__ == "__main__":
    main()
