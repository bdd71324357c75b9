"""Worker processes: whatever a job does, its requester is told, and the next job is done."""

import contextlib
import errno
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from index.errors import CairnError
from retrieval.web.pool import worker_source, workers
from retrieval.web.pool.workers import Answer, Busy, Died, Failed, Refused, TookTooLong, WorkerPool, WorkerPoolOptions
from tests.conftest import Indexed
from tests.support.hostile import encode, photo
from tests.support.live import client_of, serving, until
from tests.support.odd_jobs import OddJobs, Reader, SlowToStart, Unforkable
from tests.support.patience import patience
from tests.support.stuck_uploads import StuckUploads

FORKS = pytest.mark.skipif(not worker_source.can_fork(), reason="workers cannot be forked here")
OPTIONS = WorkerPoolOptions(workers=1, waiting=3, seconds=60.0, memory=1 << 30)


@pytest.fixture(params=[pytest.param("forked", marks=FORKS), "spawned"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How workers come into being."""
    if request.param == "spawned":
        monkeypatch.setattr(worker_source, "can_fork", lambda: False)
    return str(request.param)


@pytest.fixture
def pool(way: str) -> Iterator[WorkerPool]:
    pool = WorkerPool(OddJobs, (), OPTIONS)
    yield pool
    pool.close()
    assert pool.processes() == []


def _ask(pool: WorkerPool, job: str, **request: object) -> Answer:
    return pool.submit(job, request).result(patience(60))


def test_jobs_are_done_by_one_process_and_refusals_keep_it(pool: WorkerPool) -> None:
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


def test_a_process_that_dies_is_replaced(pool: WorkerPool) -> None:
    first = _ask(pool, "echo")[0]["pid"]
    with pytest.raises(Died):
        _ask(pool, "die")
    assert _ask(pool, "echo")[0]["pid"] != first
    assert not psutil.pid_exists(first)


def test_a_process_that_is_killed_while_nobody_asks_it_fails_no_job(pool: WorkerPool) -> None:
    first = _ask(pool, "echo")[0]["pid"]
    (worker,) = pool._workers.values()
    psutil.Process(first).kill()
    assert worker.pipe.poll(patience(30))  # it has ended
    assert _ask(pool, "echo")[0]["pid"] != first


LONG = 1 << 20


@pytest.mark.parametrize(
    ("said", "error"),
    [
        pytest.param(*({"text": "", "length": LONG}, TookTooLong), marks=pytest.mark.slow),  # a message without an end
        pytest.param(*({"text": '{"done"', "length": LONG}, TookTooLong), marks=pytest.mark.slow),
        ({"text": '{"done": {}}'}, TookTooLong),  # an answer without the bytes that go with it
        pytest.param(*({"text": '{"done": {}}', "children": True}, TookTooLong), marks=pytest.mark.slow),
        ({"text": "", "length": 1 << 40}, Died),
        ({"text": "", "length": (1 << 31) - 1}, Died),
        ({"text": "[" * 100_000}, Died),
        ({"text": "{}", "seconds": 0}, Died),
        ({"text": '{"done": 1}', "seconds": 0}, Died),
        ({"text": '{"refused": "No."}', "seconds": 0}, Died),
        ({"text": '{"opening": true}'}, Died),
    ],
)
@FORKS
def test_a_process_that_a_photo_has_taken_over_holds_nobody(said: dict[str, object], error: type[Exception]) -> None:
    pool = WorkerPool(OddJobs, (), WorkerPoolOptions(workers=1, seconds=2.0))
    try:
        pool.wait_until_open(60)
        began = time.monotonic()
        assert type(pool.submit("say", said).exception(patience(30))) is error
        assert time.monotonic() - began < patience(6)
        assert any(pool.submit("echo", {}).exception(patience(30)) is None for _ in range(5))
    finally:
        pool.close()


@FORKS
def test_a_process_that_says_it_is_outdated_has_no_time_to_open() -> None:
    """It is replaced at once."""
    pool = WorkerPool(OddJobs, (), OPTIONS)
    try:
        first = _ask(pool, "echo")[0]["pid"]
        said = pool.submit("say", {"text": '{"outdated": true}'})
        while pool.processes() == [first]:
            time.sleep(0.01)
        pool.close()
        assert isinstance(said.exception(patience(10)), Died) and not psutil.pid_exists(first)
    finally:
        pool.close()


@FORKS
def test_a_defect_that_ends_a_process_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    pool = WorkerPool(OddJobs, (), OPTIONS)
    process = psutil.Process(_ask(pool, "echo")[0]["pid"])
    (worker,) = pool._workers.values()
    worker.pipe.send_bytes(b'["echo"]')
    process.wait(patience(30))
    pool.close()
    assert "ValueError: not enough values to unpack" in capfd.readouterr().err


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system bounds no process's memory")
def test_a_job_that_wants_all_memory_ends_and_nothing_else_does(pool: WorkerPool) -> None:
    first = _ask(pool, "echo")[0]["pid"]
    with pytest.raises(Refused, match="not enough memory"):
        _ask(pool, "hoard")
    assert _ask(pool, "echo")[0]["pid"] == first


@pytest.mark.slow
def test_a_job_that_hangs_is_given_up_and_its_process_killed() -> None:
    pool = WorkerPool(OddJobs, (), WorkerPoolOptions(workers=1, seconds=5.0))
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
    pool = WorkerPool(OddJobs, (), OPTIONS)
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


@pytest.mark.parametrize("busy", [False, pytest.param(True, marks=FORKS)])
def test_workers_end_with_a_server_that_is_killed(busy: bool) -> None:
    """Nothing holds their pipe open then."""
    pool = WorkerPool(OddJobs, (), OPTIONS)
    process = psutil.Process(_ask(pool, "echo")[0]["pid"])
    (worker,) = pool._workers.values()
    if busy:
        worker.pipe.send_bytes(b'["sleep", {}, false]')
        time.sleep(0.2)
    worker.pipe.close()
    process.wait(patience(30))
    pool.close()


# Several clients


FAIR = WorkerPoolOptions(workers=1, waiting=30, seconds=600.0)


def _occupied(pool: WorkerPool, **more: Any) -> "Future[Answer]":
    """Keep a worker busy."""
    job = pool.submit("sleep", {}, **more)
    until(job.running)
    return job


def test_clients_take_turns(tmp_path: Path) -> None:
    pool = WorkerPool(OddJobs, (), FAIR)
    log = tmp_path / "log"
    try:
        first = _occupied(pool, client="greedy")
        asked = [("greedy", place) for place in range(5)] + [("modest", 0), ("other", 0), ("modest", 1)]
        jobs = [
            pool.submit("log", {"log": str(log), "name": f"{client} {place}"}, client=client) for client, place in asked
        ]
        pool.give_up(first)
        for job in jobs:
            job.result(patience(60))
        said = "greedy 0, modest 0, other 0, greedy 1, modest 1, greedy 2, greedy 3, greedy 4"
        assert log.read_text().split("\n")[:-1] == said.split(", ")
    finally:
        pool.close()


def test_whoever_has_most_waiting_is_refused_first() -> None:
    pool = WorkerPool(OddJobs, (), OPTIONS)
    try:
        _occupied(pool, client="greedy")
        greedy = [pool.submit("echo", {}, client="greedy") for _ in range(OPTIONS.waiting)]
        with pytest.raises(Busy):
            pool.submit("echo", {}, client="greedy")
        pool.submit("echo", {}, client="modest")
        assert isinstance(greedy[-1].exception(patience(10)), Busy)
        assert [job.done() for job in greedy] == [False, False, True] and pool.waiting() == OPTIONS.waiting
    finally:
        pool.close()


def test_uploads_have_a_worker_apart() -> None:
    pool = WorkerPool(OddJobs, (), WorkerPoolOptions(workers=1, uploads=1, waiting=3, seconds=600.0))
    try:
        stuck = _occupied(pool, upload=True)
        waiting = [pool.submit("echo", {}, upload=True) for _ in range(3)]
        with pytest.raises(Busy):
            pool.submit("echo", {}, upload=True)
        assert _ask(pool, "echo")[0]["done"] > 0
        assert not stuck.done() and not any(job.done() for job in waiting)
        _occupied(pool)
        pool.give_up(stuck)
        assert all(job.result(patience(60)) for job in waiting)
    finally:
        pool.close()


def test_jobs_that_nobody_waits_for_are_not_done_and_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = WorkerPool(OddJobs, (), FAIR)
    log = tmp_path / "log"
    try:
        first = _occupied(pool)
        pids = pool.processes()
        waiting = pool.submit("log", {"log": str(log), "name": "left"})
        pool.give_up(waiting)
        assert waiting.cancelled() and pool.waiting() == 0
        later = pool.submit("log", {"log": str(log), "name": "stayed"})
        pool.give_up(first)
        later.result(patience(60))
        assert isinstance(first.exception(1), Died) and log.read_text() == "stayed\n"
        assert pool.processes() != pids
        # One that ends soon is let be, as its worker is.
        monkeypatch.setattr(workers, "GRACE", 600.0)
        soon = pool.submit("nap", {"seconds": 0.2})
        until(soon.running)
        pids = pool.processes()
        pool.give_up(soon)
        assert soon.result(patience(30)) and _ask(pool, "echo")[0]["pid"] == pids[0]
    finally:
        pool.close()


# What is opened


@pytest.fixture
def reader(way: str, tmp_path: Path) -> Iterator[tuple[WorkerPool, Path]]:
    """A pool of two workers that read a file."""
    path = tmp_path / "state"
    path.write_text("first")
    pool = WorkerPool(Reader, (path,), WorkerPoolOptions(workers=2, seconds=60.0))
    yield pool, path
    pool.close()


def _read(pool: WorkerPool) -> str:
    text = _ask(pool, "echo")[0]["text"]
    assert isinstance(text, str)
    return text


def _log(path: Path) -> list[list[str]]:
    """What was read, and by which process, in order."""
    return [line.split() for line in path.with_suffix(".log").read_text().splitlines()]


def _settle(pool: WorkerPool) -> list[int]:
    """Wait until there are two workers; give their process ids."""
    pool.wait_until_open(60)
    while len(found := pool.processes()) < 2:
        time.sleep(0.01)
    return found


@pytest.mark.slow
def test_a_worker_that_is_killed_in_a_job_has_a_successor_that_need_not_open(
    reader: tuple[WorkerPool, Path], way: str
) -> None:
    pool, path = reader
    before = _settle(pool)
    opened = len(_log(path))
    assert opened == (1 if way == "forked" else 2)
    for _ in range(3):
        dying = [pool.submit("die", {}) for _ in range(2)]
        assert [type(one.exception(60)) for one in dying] == [Died, Died]
        assert _read(pool) == "first"
    assert not set(_settle(pool)) & set(before)
    if way == "forked":
        assert len(_log(path)) == opened
        assert str(pool._source._process.pid) == _log(path)[0][1] and _log(path)[0][1] not in map(str, before)


def test_what_has_changed_is_opened_once_and_what_cannot_be_is_told(reader: tuple[WorkerPool, Path], way: str) -> None:
    pool, path = reader
    _settle(pool)
    for text in ("second", "third"):
        path.write_text(text)
        assert [_read(pool) for _ in range(4)] == [text] * 4
        if way == "forked":
            assert [one[0] for one in _log(path)].count(text) == 1
    path.write_text("damaged")
    with pytest.raises(CairnError, match="It is damaged"):
        _read(pool)
    path.write_text("sound")
    assert [_read(pool) for _ in range(4)] == ["sound"] * 4


@FORKS
def test_what_has_changed_is_opened_beside_the_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LOOK", 0.05)
    path = tmp_path / "state"
    path.write_text("first")
    pool = WorkerPool(Reader, (path,), WorkerPoolOptions(workers=2))
    before = _settle(pool)
    path.write_text("second")
    while set(pool.processes()) & set(before) or len(pool.processes()) < 2:  # nothing is asked
        time.sleep(0.01)
    assert _read(pool) == "second"
    pool.close()


@pytest.mark.parametrize("way", [pytest.param("forked", marks=FORKS)], indirect=True)
def test_jobs_go_on_while_the_process_that_opened_all_is_replaced(reader: tuple[WorkerPool, Path]) -> None:
    pool, _ = reader
    _settle(pool)
    sleeping = pool.submit("sleep", {"seconds": 2})
    while pool.waiting():
        time.sleep(0.01)
    assert isinstance(pool._source, worker_source.ForkServer)
    psutil.Process(pool._source._process.pid).kill()
    with pytest.raises(Died):  # the other one, which is to have a successor
        _ask(pool, "die")
    assert _read(pool) == "first"
    assert sleeping.result(60)[0]["text"] == "first"


@FORKS
def test_workers_of_a_process_that_has_died_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "LOOK", 0.05)
    path = tmp_path / "state"
    path.write_text("first")
    pool = WorkerPool(Reader, (path,), WorkerPoolOptions(workers=2))
    before = _settle(pool)
    assert isinstance(pool._source, worker_source.ForkServer)
    psutil.Process(pool._source._process.pid).kill()
    while set(pool.processes()) & set(before) or len(pool.processes()) < 2:  # nothing is asked
        time.sleep(0.01)
    assert [one[0] for one in _log(path)] == ["first"] * 2
    pool.close()


@FORKS
def test_where_no_process_can_be_started_what_is_open_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    path.write_text("first")
    pool = WorkerPool(Unforkable, (path,), WorkerPoolOptions(workers=1))
    try:
        assert _ask(pool, "echo")[0]["text"] == "first"
        source = pool._source
        path.write_text("full")
        with pytest.raises(Died):
            _ask(pool, "die")
        with pytest.raises(Died, match="temporarily"):  # of the fork
            _ask(pool, "echo")
        path.write_text("free")
        first = _ask(pool, "echo")[0]["pid"]

        def too_many(pid: int) -> int:
            raise OSError(errno.EMFILE, f"Too many open files for {pid}")

        with monkeypatch.context() as here:
            here.setattr(os, "pidfd_open", too_many)
            with pytest.raises(Died):
                _ask(pool, "die")
            with pytest.raises(Died, match="Too many open files"):
                _ask(pool, "echo")
        assert _ask(pool, "echo")[0]["pid"] != first
        assert pool._source is source and len(_log(path)) == 1
    finally:
        pool.close()


@pytest.mark.parametrize("way", [pytest.param("forked", marks=FORKS)], indirect=True)
def test_closing_waits_for_nothing_that_is_being_opened(reader: tuple[WorkerPool, Path]) -> None:
    pool, path = reader
    _settle(pool)
    path.write_text("slow")
    asked = pool.submit("echo", {})
    while _log(path)[-1][0] != "slow":
        time.sleep(0.01)
    began = time.monotonic()
    pool.close()
    assert time.monotonic() - began < patience(8) and asked.exception(1) is not None


@pytest.mark.parametrize("way", [pytest.param("forked", marks=FORKS)], indirect=True)
def test_workers_share_the_memory_of_what_is_open(reader: tuple[WorkerPool, Path]) -> None:
    pool, _ = reader
    _settle(pool)
    assert _ask(pool, "echo")[0]["sum"] == 1024
    for pid in pool.processes():
        of = Path(f"/proc/{pid}/smaps_rollup").read_text()
        assert sum(int(size) for size in re.findall(r"Private_\w+:\s+(\d+) kB", of)) < 48 << 10
        assert int(re.findall(r"Rss:\s+(\d+) kB", of)[0]) > 64 << 10


@pytest.mark.slow
@pytest.mark.parametrize("way", [pytest.param("forked", marks=FORKS), "spawned"], indirect=True)
def test_jobs_wait_for_what_is_being_opened_and_that_does_not_count(way: str) -> None:
    limit = patience(1.5)
    pool = WorkerPool(SlowToStart, ("nap", 5 / 3 * limit), WorkerPoolOptions(workers=1, seconds=limit))
    try:
        late = pool.submit("echo", {})
        assert isinstance(late.exception(60), TookTooLong) and not pool.is_open
        waited = pool.submit("sleep", {"seconds": 2 / 3 * limit})
        assert waited.exception(60) is None and pool.is_open
    finally:
        pool.close()


def test_what_cannot_be_opened_for_want_of_processes_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = worker_source.make_source
    failures = [worker_source.NotStarted("Resource temporarily unavailable")]

    def make_source(start: worker_source.Start) -> worker_source.WorkerSource:
        if failures:
            raise failures.pop()
        return made(start)

    monkeypatch.setattr(workers, "make_source", make_source)
    pool = WorkerPool(OddJobs, (), OPTIONS)
    try:
        with contextlib.suppress(Died):  # where it is waited for before that is known
            pool.wait_until_open(60)
        assert _ask(pool, "echo")[0]["done"] == 1
    finally:
        pool.close()


# In the server


def test_requests_that_hang_die_or_crash_are_answered_and_the_next_ones_too(
    indexed: Indexed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    searching = WorkerPoolOptions(workers=1, waiting=1, seconds=6.0, memory=1 << 30)
    options = {"search_jobs": OddJobs, "search": searching, "pictures": WorkerPoolOptions(workers=1)}
    with serving(indexed.folder, tmp_path / "cache", **options) as address, httpx.Client(base_url=address) as client:
        client.timeout = httpx.Timeout(60)

        def search(photo: int) -> httpx.Response:
            return client.get("/api/search", params={"q": photo})

        def lives() -> bool:
            """Whether a search is answered, sooner or later: a busy machine starts a new process slowly."""
            return any(search(4).status_code == 200 for _ in range(10))

        assert lives()
        for photo, status, sentence in ((1, 503, "broken off"), (3, 503, "memory"), (2, 500, "Something went wrong")):
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


def test_uploads_that_never_end_keep_nobody_else_waiting(indexed: Indexed, tmp_path: Path) -> None:
    """Six connections hang with an upload each; pictures come, and all is as before once those have left."""
    stuck, good = ({"photo": (name, encode(photo(size=(40, 30)), "PNG"))} for name in ("stuck.jpg", "good.jpg"))
    options = {
        "search_jobs": OddJobs,
        "search": WorkerPoolOptions(workers=1),
        "picture_jobs": StuckUploads,
        "pictures": WorkerPoolOptions(workers=1, uploads=1, waiting=100, seconds=600.0),
    }
    with (
        serving(indexed.folder, tmp_path / "cache", **options) as address,
        client_of(address) as client,
        contextlib.ExitStack() as connections,
    ):

        def waiting() -> int:
            figures = client.get("/metrics").text
            (line,) = re.findall(r"^cairn_queue_length.*pictures.* (\S+)$", figures, re.MULTILINE)
            return int(float(line))

        asked = client.build_request("POST", "/api/preview", files=stuck)
        head = "".join(f"{name}: {value}\r\n" for name, value in asked.headers.items())
        where = urlsplit(address)
        hostile = [
            connections.enter_context(socket.create_connection((where.hostname or "", where.port or 0)))
            for _ in range(6)
        ]
        for one in hostile:
            one.sendall(f"POST /api/preview HTTP/1.1\r\n{head}\r\n".encode() + asked.read())
        until(lambda: waiting() == 5)
        for number in range(4):
            for size in (128, 256, 512):
                assert client.get(f"/api/photos/{number}/thumbnail", params={"size": size}).status_code == 200
        assert client.get("/api/photos/0/image").status_code == 200
        assert waiting() == 5
        connections.close()
        until(lambda: waiting() == 0)
        assert client.post("/api/preview", files=good).status_code == 200
