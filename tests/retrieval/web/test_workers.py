"""Worker processes: whatever a job does, its requester is told, and the next job is done."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import httpx
import psutil
import pytest

from index.errors import CairnError
from retrieval.web.workers import Answer, Busy, Died, Failed, Pool, PoolOptions, Refused, TookTooLong
from tests.conftest import Indexed
from tests.retrieval.web.conftest import serving
from tests.support.odd_jobs import OddJobs

OPTIONS = PoolOptions(workers=1, waiting=3, seconds=60.0, memory=1 << 30)


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool(OddJobs, (), OPTIONS)
    yield pool
    pool.close()
    assert pool.processes() == []


def _ask(pool: Pool, job: str, **request: object) -> Answer:
    return pool.submit(job, request).result(60)


def test_jobs_are_done_by_one_process_and_refusals_keep_it(pool: Pool) -> None:
    first, body = _ask(pool, "echo", text="ü 石 \ud800", number=1.5)
    assert (first["request"], body) == ({"text": "ü 石 \ud800", "number": 1.5}, b"body")
    with pytest.raises(Refused, match=r"^No\.$") as refused:
        _ask(pool, "refuse")
    assert refused.value.kind == "photo"
    with pytest.raises(CairnError, match="This cannot be"):
        _ask(pool, "regret")
    with pytest.raises(Failed, match="ZeroDivisionError"):
        _ask(pool, "crash")
    last, _ = _ask(pool, "echo")
    assert (last["pid"], last["done"]) == (first["pid"], 5)
    assert pool.processes() == [first["pid"]]


def test_a_process_that_dies_is_replaced(pool: Pool) -> None:
    first = _ask(pool, "echo")[0]["pid"]
    with pytest.raises(Died):
        _ask(pool, "die")
    assert _ask(pool, "echo")[0]["pid"] != first
    assert not psutil.pid_exists(first)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system bounds no process's memory")
def test_a_job_that_wants_all_memory_ends_and_nothing_else_does(pool: Pool) -> None:
    first = _ask(pool, "echo")[0]["pid"]
    with pytest.raises(Refused, match="not enough memory"):
        _ask(pool, "hoard")
    assert _ask(pool, "echo")[0]["pid"] == first


def test_a_job_that_hangs_is_given_up_and_its_process_killed() -> None:
    pool = Pool(OddJobs, (), PoolOptions(workers=1, seconds=5.0))
    try:
        while not pool.processes():  # the thread is about to start it
            time.sleep(0.01)
        (first,) = pool.processes()
        hanging = pool.submit("sleep", {})
        waiting = pool.submit("echo", {})
        with pytest.raises(TookTooLong):
            hanging.result(60)
        # What waited behind it was given up for its own age, or done; the pool is there in any case.
        assert waiting.exception(60) is None or isinstance(waiting.exception(), TookTooLong)
        futures = (pool.submit("echo", {}) for _ in range(10))  # where all cores are busy, a process starts slowly
        assert next(future.result()[0]["pid"] for future in futures if future.exception(60) is None) != first
        assert not psutil.pid_exists(first)
    finally:
        pool.close()


def test_too_many_jobs_are_refused_and_closing_gives_up_those_that_wait() -> None:
    pool = Pool(OddJobs, (), OPTIONS)
    pid = _ask(pool, "echo")[0]["pid"]
    futures: list[Future[Answer]] = [pool.submit("sleep", {})]
    while pool.waiting():
        time.sleep(0.01)
    futures += [pool.submit("echo", {}) for _ in range(OPTIONS.waiting)]
    with pytest.raises(Busy):
        pool.submit("echo", {})
    pool.close()
    assert [type(future.exception(1)) for future in futures] == [Died] + [Busy] * OPTIONS.waiting
    assert not psutil.pid_exists(pid)
    with pytest.raises(Busy):
        pool.submit("echo", {})


def test_workers_end_with_a_server_that_is_killed() -> None:
    """Nothing holds their pipe open then."""
    pool = Pool(OddJobs, (), OPTIONS)
    process = psutil.Process(_ask(pool, "echo")[0]["pid"])
    (worker,) = pool._workers
    worker._pipe.close()
    process.wait(30)
    pool.close()


# In the server


def test_requests_that_hang_die_or_crash_are_answered_and_the_next_ones_too(
    indexed: Indexed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    searching = PoolOptions(workers=1, waiting=1, seconds=6.0, memory=1 << 30)
    options = {"search_jobs": OddJobs, "search": searching, "pictures": PoolOptions(workers=1)}
    with serving(indexed.folder, tmp_path / "cache", **options) as address, httpx.Client(base_url=address) as client:
        client.timeout = httpx.Timeout(60)

        def search(photo: int) -> httpx.Response:
            return client.get("/api/search", params={"q": photo})

        def lives() -> bool:
            """Whether a search is answered, sooner or later: a busy machine starts a new process slowly."""
            return any(search(4).status_code == 200 for _ in range(10))

        assert lives()
        for photo, status, sentence in ((1, 503, "broke off"), (3, 503, "memory"), (2, 500, "Something went wrong")):
            answer = search(photo)
            assert (answer.status_code, list(answer.json())) == (status, ["detail"])
            assert sentence in answer.json()["detail"] and "Error" not in answer.text
            assert ("retry-after" in answer.headers) == (status == 503)
            assert lives()
        assert "ZeroDivisionError" in caplog.text and "\x1b" not in caplog.text

        answers: list[httpx.Response] = []

        def hang() -> None:
            answers.append(httpx.get(f"{address}/api/search?q=0", timeout=60))

        hanging = [threading.Thread(target=hang) for _ in range(4)]
        for thread in hanging:
            thread.start()
        while len(answers) < 2:  # one is done and one waits: the others are refused at once
            time.sleep(0.02)
        assert [answer.status_code for answer in answers] == [503, 503]
        assert "busy" in answers[0].json()["detail"] and answers[0].headers["retry-after"].isdecimal()
        # A search that hangs keeps nobody from looking at the photos.
        assert client.get("/api/photos").status_code == 200
        assert client.get("/api/photos/0/thumbnail").status_code == 200
        for thread in hanging:
            thread.join(60)
        assert [answer.status_code for answer in answers[2:]] == [504, 504]
        assert "6 seconds" in answers[2].json()["detail"]
        assert lives()
