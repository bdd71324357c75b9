"""The simulation agrees with what queueing theory says, and with sums where nobody waits."""

from dataclasses import replace

import numpy as np
import pytest

from scripts.cluster_simulation import Fleet, Measured, faster, simulate, smallest

NOTHING = Measured(*[0.0] * 8, batches=1, front=0.0, front_message=0.0, worker_message=0.0, way=0.0, spread=0.0)


@pytest.mark.slow
def test_one_worker_is_a_queue() -> None:
    """M/D/1: the mean wait is ρ s / (2 (1 - ρ)) (Pollaczek and Khinchine)."""
    one = replace(NOTHING, count_fixed=10.0)
    waits = simulate(one, Fleet(1, 1, 10_000), 60.0, queries=30_000, seed=1)
    assert waits.times.mean() == pytest.approx(10 + 0.6 * 10 / (2 * 0.4), rel=0.05)


@pytest.mark.slow
def test_fronts_are_a_queue_too() -> None:
    one = replace(NOTHING, front=10.0)
    waits = simulate(one, Fleet(1, 1, 1), 60.0, queries=30_000, seed=2)
    assert waits.times.mean() == pytest.approx(10 + 0.6 * 10 / (2 * 0.4), rel=0.05)


def test_where_nobody_waits_times_add_up() -> None:
    some = replace(
        NOTHING, count_fixed=3.0, count_photo=0.01, score_photo=0.002, rank_fixed=1.0, front=20.0, way=0.5, verified=0.0
    )
    waits = simulate(some, Fleet(1000, 4, 2), 0.01, queries=50)
    held = 1000 / 4
    # Three rounds are asked; what is verified is no photo, and so no work.
    expected = 20 + 3 + 0.01 * held + 0.002 * held + 1 + 3 * 0.5
    assert np.median(waits.times) == pytest.approx(expected, abs=0.6)


def test_messages_cost_the_front_more_than_they_bring() -> None:
    """Ever more workers end in ever more messages, but where one message reaches several."""
    measured = replace(Measured(), spread=0.0)
    few, many = (simulate(measured, Fleet(10**6, number, 4), 0.1, queries=60).share(50) for number in (100, 2000))
    together = simulate(measured, Fleet(10**6, 2000, 4, together=16), 0.1, queries=60).share(50)
    assert few < many and together < many


def test_the_same_seed_gives_the_same_waits() -> None:
    fleets = [simulate(Measured(), Fleet(10**6, 16, 4), 2.0, queries=80, seed=3).times for _ in range(2)]
    np.testing.assert_array_equal(*fleets)


def test_the_fewest_workers_that_do() -> None:
    cheap = replace(Measured(), front=5.0, front_message=0.02, count_fixed=2.0)
    found = smallest(cheap, 10**6, 1.0, 100.0, queries=60)
    assert found is not None and found[1].share(50) < 100
    more = smallest(cheap, 10**7, 1.0, 100.0, queries=60)
    assert more is not None and more[0].workers > found[0].workers
    assert smallest(replace(cheap, front=200.0), 10**6, 1.0, 100.0, queries=60) is None
    assert smallest(faster(replace(cheap, front=150.0), 3.0), 10**6, 1.0, 100.0, queries=60) is not None


def test_times_are_fitted_to_what_was_measured() -> None:
    """Of made-up times whose parts are known."""
    results = []
    for shards in (1, 2, 4, 8):
        calls = {"begin": 5 * shards + 200, "finish": 1.0 * shards + 10, "best": 0.5 * shards, "verify": 60.0}
        here = sum(calls.values()) + 30
        messages = 5 * shards
        shared = {"cpu_ms": here + 1.5 * messages, "front_ms": 30 + 0.5 * messages, "messages": messages}
        in_process = {"shared": {"cpu_ms": here, "messages": messages}, "calls_ms": calls}
        results.append({"shards": shards, "in_process": in_process, "cluster": {"shared": shared}})
    found = Measured.of(results, 100_000)
    assert found.count_fixed == pytest.approx(5) and found.count_photo == pytest.approx(200 / 100_000)
    assert found.score_fixed == pytest.approx(1) and found.verify_photo == pytest.approx(60 / found.verified)
    assert (found.front, found.front_message, found.worker_message) == pytest.approx((30, 0.5, 1.0))
