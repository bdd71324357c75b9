"""The queue of jobs: its states, what survives, and the processes that it runs."""

import contextlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from index.errors import CairnError
from index.messages import Message, on_command_line
from retrieval.collection.locking import lock_folder
from retrieval.jobs import kinds
from retrieval.jobs.child import NICE
from retrieval.jobs.job import QueuedJob
from retrieval.jobs.opening import ALONE, queue_of
from retrieval.jobs.queue import Queue
from retrieval.jobs.running import Child, shortened
from retrieval.jobs.store import ENDED
from retrieval.library.progress import VARIABLE, Pace
from tests.conftest import Indexed
from tests.support.live import until
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes are not paused here")


class PretendChild:
    """Takes the place of a process: a test says what becomes of it."""

    def __init__(self, command: list[str], reported: Callable[[], None], parts: object = None) -> None:
        from retrieval.jobs.running import Reached

        self.command, self.reached, self.share, self.seconds_left = command, Reached(), None, None
        self.code: int | None = None
        self.answer: dict[str, Any] | None = {"ok": True}
        self.paused = False
        ALIVE.append(self)

    def wait(self) -> int:
        while self.code is None:
            time.sleep(0.002)
        return self.code

    def end(self, code: int, answer: dict[str, Any] | None) -> None:
        self.answer, self.code = answer, code

    def pause(self) -> None:
        self.paused = True

    def go_on(self) -> None:
        self.paused = False

    def interrupt(self) -> None:
        self.end(130, {"error": "stopped"})

    def kill(self) -> None:
        if self.code is None:
            self.end(-9, None)

    def result(self) -> dict[str, Any] | None:
        return self.answer

    def complaint(self) -> str:
        return ""

    def close(self) -> None:
        ALIVE.remove(self)


ALIVE: list[PretendChild] = []


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("retrieval.jobs.queue.Child", PretendChild)
    ALIVE.clear()
    yield
    for child in list(ALIVE):
        child.kill()


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    queue = open_queue(tmp_path)
    queue.start()
    yield queue
    queue.stop()


def open_queue(folder: Path, roots: Sequence[Path] = ()) -> Queue:
    """A queue of the collections in a folder, which has its file."""
    return Queue(folder / "jobs.sqlite", lambda name: folder / name, roots)


def add(queue: Queue, collection: str, kind: str = "compact") -> QueuedJob:
    return queue.add(collection, kinds.KINDS[kind]())


def state(queue: Queue, job: QueuedJob) -> str:
    return queue.job(job.id).state


def test_jobs_run_one_at_a_time_in_their_order(pretend: None, queue: Queue, tmp_path: Path) -> None:
    assert queue.jobs() == []
    assert list(tmp_path.iterdir()) == []  # nothing is written before there is work
    ended = []
    queue.after.append(ended.append)
    jobs = [add(queue, name) for name in "abc"]
    assert add(queue, "c") == queue.job(jobs[2].id)  # the same that waits is not queued twice
    for job in jobs:
        until(lambda job=job: state(queue, job) == "running")
        (child,) = until(lambda: list(ALIVE))
        assert child.command == ["compact", str(tmp_path / job.collection), "--json"]
        before = queue.version
        child.end(0, {"removed": 3})
        until(lambda job=job: state(queue, job) == "done")
        until(lambda before=before: queue.version > before)
    until(lambda: len(ended) == 3)
    assert [job.id for job in ended] == [job.id for job in jobs]
    assert queue.job(jobs[0].id).result == {"removed": 3}
    assert [job.id for job in queue.jobs("b")] == [jobs[1].id]
    queue.forget(jobs[1].id)
    with pytest.raises(CairnError, match="no such job"):
        queue.job(jobs[1].id)


def test_short_jobs_of_other_collections_go_first_but_not_for_ever(
    pretend: None, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = add(queue, "a")
    until(lambda: state(queue, first) == "running")
    kept = [add(queue, "b", "improve"), add(queue, "b", "compact"), add(queue, "c", "group"), add(queue, "d", "check")]
    improve, compact, group, check = kept
    assert {number: job.id for number, job in queue.before_each().items()} == {
        check.id: first.id,
        group.id: check.id,
        improve.id: group.id,
        compact.id: improve.id,
    }
    order = []

    def end() -> None:
        ALIVE[0].end(0, {})
        order.append(until(lambda: next((job for job in kept if state(queue, job) == "running"), None)))
        kept.remove(order[-1])

    end()
    end()
    assert order == [check, group]  # and the short one of b comes after what was added to b before it
    late = add(queue, "e")
    kept.append(late)
    end()
    assert order[-1] == late
    kept += [add(queue, "f"), add(queue, "g")]
    monkeypatch.setattr("retrieval.jobs.queue.LONG", -1.0)  # all have waited for long: they go in their order
    end()
    end()
    assert order[-2:] == [improve, compact]


def test_the_error_of_a_command_is_kept_as_data(pretend: None, queue: Queue) -> None:
    error = CairnError("There is no folder {folder}: see {--photos}.", folder="/a")
    job = add(queue, "a")
    until(lambda: ALIVE)[0].end(2, {"error": str(error), "kind": "CairnError", "message": error.message.to_dict()})
    until(lambda: state(queue, job) == "failed")
    assert queue.job(job.id).error == error.message


def test_a_command_gives_its_error_as_data_to_a_server_alone(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    printed = []
    for more in ({}, {VARIABLE: str(writing)}):
        command = [sys.executable, "-m", "cairn", "check", str(tmp_path / "none"), "--json"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, env={**os.environ, **more}, pass_fds=(writing,))
        printed.append(json.loads(done.stdout))
    os.close(reading)
    os.close(writing)
    message = printed[1].pop("message")
    assert printed[0] == printed[1] and Message.from_dict(message).sentence(on_command_line) == printed[0]["error"]


def test_a_failed_job_says_why(pretend: None, queue: Queue, tmp_path: Path) -> None:
    for code, answer, error in (
        (2, {"error": "There is no folder."}, "There is no folder."),
        (3, None, "The command ended with the code 3."),
    ):
        job = add(queue, str(code))
        until(lambda: ALIVE)
        ALIVE[0].end(code, answer)
        until(lambda job=job: state(queue, job) == "failed")
        assert str(queue.job(job.id).error) == error
    for act in (queue.pause, queue.resume, queue.cancel):
        with pytest.raises(CairnError):
            act(job.id)


def test_what_is_killed_begins_again_but_not_for_ever(pretend: None, queue: Queue, tmp_path: Path) -> None:
    job = add(queue, "a")
    for _ in range(3):
        child = until(lambda: ALIVE and ALIVE[0].code is None and ALIVE[0])
        child.end(-9, None)
        until(lambda child=child: child not in ALIVE)
    until(lambda: state(queue, job) == "failed")
    assert "not enough memory" in str(queue.job(job.id).error)


@pytest.mark.slow
def test_a_job_waits_for_a_lock(pretend: None, queue: Queue, tmp_path: Path) -> None:
    job = add(queue, "a")
    (tmp_path / "a").mkdir()
    with lock_folder(tmp_path / "a"):
        until(lambda: ALIVE)[0].end(2, {"error": str(refused(tmp_path / "a")), "kind": "CollectionLocked"})
        assert "waits" in until(lambda: queue.job(job.id).note)
        until(lambda: not ALIVE)
        time.sleep(0.1)
        assert (state(queue, job), ALIVE) == ("queued", [])
    until(lambda: state(queue, job) == "running")
    assert queue.job(job.id).note is None


def refused(folder: Path) -> CairnError:
    """What a command says that finds a collection locked."""
    with pytest.raises(CairnError) as caught, lock_folder(folder):
        pass
    return caught.value


def test_standing_searches_are_asked_after_photos_were_added(pretend: None, indexed: Indexed, tmp_path: Path) -> None:
    folder = tmp_path / "own.cairn"
    shutil.copytree(indexed.folder, folder)
    queue = queue_of(folder, [tmp_path])
    followed: list[QueuedJob] = []
    queue.after.append(followed.append)
    queue.start()

    def add_photos(added: int) -> None:
        job = queue.add(ALONE, kinds.index_of([tmp_path]))
        until(lambda: ALIVE)[0].end(0, {"added": added})
        until(lambda: followed and followed[-1].id == job.id)

    add_photos(1)
    with sqlite3.connect(folder / "catalogue.sqlite") as file:
        file.execute(
            "INSERT INTO saved_searches (name, query, favourite, standing, created, asked_to) "
            "VALUES ('red', '{}', 0, 1, '', 0)"
        )
    add_photos(0)
    assert {job.kind for job in queue.jobs()} == {"index"}
    add_photos(1)
    until(lambda: queue.jobs()[-1].kind == "searches")
    queue.stop()


def test_pausing_lets_other_collections_go_first(pretend: None, queue: Queue, tmp_path: Path) -> None:
    first, same, other = add(queue, "a"), add(queue, "a", "check"), add(queue, "b")
    until(lambda: state(queue, first) == "running")
    queue.pause(first.id)
    assert ALIVE[0].paused
    until(lambda: state(queue, other) == "running")
    queue.resume(first.id)
    assert (state(queue, first), ALIVE[0].paused) == ("queued", True)  # one at a time
    ALIVE[1].end(0, {})
    until(lambda: state(queue, first) == "running")
    assert not ALIVE[0].paused
    assert state(queue, same) == "queued"
    queue.cancel(first.id)
    until(lambda: state(queue, first) == "cancelled" and state(queue, same) == "running")
    queue.cancel(same.id)
    until(lambda: not ALIVE)


def test_arguments_that_are_not_written_down_come_before_names(pretend: None, queue: Queue, tmp_path: Path) -> None:
    queue.name_catalogue("a", "postgresql://me:secret@host/db")
    job = queue.add("a", kinds.RemoveJob(names=["--json", "-rf", "$(reboot)"], for_good=True))
    until(lambda: ALIVE)
    assert ALIVE[0].command == [
        *("remove", str(tmp_path / "a"), "--catalogue", "postgresql://me:secret@host/db"),
        *("--json", "--for-good", "--", "--json", "-rf", "$(reboot)"),
    ]
    assert b"secret" not in (tmp_path / "jobs.sqlite").read_bytes()
    queue.cancel(job.id)
    until(lambda: not ALIVE)


def test_what_ran_is_queued_again_and_what_was_paused_stays(
    pretend: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.jobs.queue.LOOK", 0.02)
    queue = open_queue(tmp_path)
    queue.start()
    jobs = [add(queue, name) for name in "abc"]
    until(lambda: ALIVE)
    queue.pause(jobs[2].id)
    queue.stop()
    assert [job.state for job in queue.jobs()] == ["queued", "queued", "paused"]
    with sqlite3.connect(tmp_path / "jobs.sqlite") as file:  # as kill -9 leaves it
        file.execute("UPDATE jobs SET state = 'running' WHERE id = 1")
    again = open_queue(tmp_path)
    again.start()
    until(lambda: ALIVE)
    other = open_queue(tmp_path)  # a second server sees them, and leaves them alone
    other.start()
    assert [job.state for job in other.jobs()] == ["running", "queued", "paused"]
    with pytest.raises(CairnError, match="Another server"):
        other.cancel(jobs[0].id)
    other.cancel(jobs[1].id)
    again.cancel(jobs[0].id)
    until(lambda: not ALIVE)
    again.resume(jobs[2].id)
    until(lambda: ALIVE)
    again.pause(jobs[2].id)
    other.cancel(jobs[2].id)
    until(lambda: not ALIVE)  # its process does not stand still for ever, with its locks
    again.stop()
    other.stop()


def test_a_list_of_jobs_that_is_none_is_set_aside(pretend: None, tmp_path: Path) -> None:
    (tmp_path / "jobs.sqlite").write_bytes(b"no database" * 500)
    queue = open_queue(tmp_path)
    queue.start()
    assert queue.jobs() == []
    job = add(queue, "a")
    until(lambda: state(queue, job) == "running")
    queue.stop()
    assert list(tmp_path.glob("jobs.sqlite.damaged-*"))


def test_of_a_long_history_the_last_jobs_are_listed(pretend: None, tmp_path: Path) -> None:
    queue = open_queue(tmp_path)
    for number in range(6):
        job = queue.add("a", kinds.RemoveJob(names=[str(number)]))
        queue.cancel(job.id)
    add(queue, "a")
    add(queue, "other")
    assert [job.about for job in queue.jobs("a", ended=2)] == ["4", "5", ""]
    assert [job.collection for job in queue.jobs(ended=0)] == ["a", "other"]
    assert len(queue.jobs()) == 8


def test_jobs_go_on_when_a_full_disk_has_room_again(
    pretend: None, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retrieval.jobs.queue.LOOK", 0.02)
    ended: list[QueuedJob] = []
    queue.after.append(ended.append)
    requested: list[object] = []

    def refuse(*arguments: Any, **__: Any) -> bool:
        requested.append(arguments)
        raise CairnError("The disk is full.")

    with monkeypatch.context() as full:
        full.setattr("retrieval.jobs.store.Store.queue_again", refuse)
        queue.start()
        first, second = add(queue, "a"), add(queue, "a", "check")
        until(lambda: requested)
    until(lambda: ALIVE)

    with monkeypatch.context() as full:
        full.setattr("retrieval.jobs.store.Store.change", refuse)
        with pytest.raises(CairnError, match="full"):
            queue.pause(first.id)
        assert not ALIVE[0].paused  # it runs, as the list says
        ALIVE[0].end(0, {"photos": 3})
        assert until(lambda: ended)[0].state == "done"
        assert state(queue, first) == "running"  # as far as the list says
    until(lambda: state(queue, second) == "running")
    assert queue.job(first.id).result == {"photos": 3}


def test_where_nothing_can_be_written_that_is_said(tmp_path: Path) -> None:
    queue = open_queue(tmp_path / "missing")
    queue.start()
    with pytest.raises(CairnError, match="cannot be used"):
        add(queue, "a")
    queue.stop()


def test_results_keep_their_figures_and_the_first_of_long_lists() -> None:
    assert shortened({"names": [1, 2]}) == {"names": [1, 2]}
    assert len(shortened({"names": list(range(3000))})["names"]) == 1000


class Steps(RuleBasedStateMachine):
    """Whatever is done in whatever order, one job runs at most, and every job is in a state that it may be in."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self.folder = Path(tempfile.mkdtemp())
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("retrieval.jobs.queue.Child", PretendChild)
        ALIVE.clear()
        self.queue = open_queue(self.folder)
        self.queue.start()
        self.added: list[int] = []

    @rule(name=st.sampled_from("abc"), word=st.sampled_from(["compact", "check"]))
    def add(self, name: str, word: str) -> None:
        self.added.append(add(self.queue, name, word).id)

    @rule(data=st.data(), act=st.sampled_from(["pause", "resume", "cancel"]))
    def act(self, data: Any, act: str) -> None:
        if self.added:
            with contextlib.suppress(CairnError):
                getattr(self.queue, act)(data.draw(st.sampled_from(self.added)))

    @rule(code=st.sampled_from([0, 2]))
    def end(self, code: int) -> None:
        for child in list(ALIVE):
            if not child.paused:
                child.end(code, {} if code == 0 else {"error": "wrong"})

    @rule()
    def start_again(self) -> None:
        self.queue.stop()
        self.queue = open_queue(self.folder)
        self.queue.start()

    @invariant()
    def one_runs(self) -> None:
        jobs = self.queue.jobs()
        assert {job.id for job in jobs} == set(self.added)
        assert sum(job.state == "running" for job in jobs) <= 1
        assert all((job.ended is not None) == (job.state in ENDED) for job in jobs)

    def teardown(self) -> None:
        def all_ended() -> bool:
            for job in self.queue.jobs():
                if job.state == "paused":
                    with contextlib.suppress(CairnError):  # its process had ended before it was paused
                        self.queue.resume(job.id)
            self.end(0)
            return all(job.state in ENDED for job in self.queue.jobs())

        try:
            until(all_ended)  # nothing is forgotten, nothing waits for ever
            self.queue.stop()
        finally:
            self.patch.undo()
            shutil.rmtree(self.folder)


Steps.TestCase.settings = settings(
    max_examples=8, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSteps = Steps.TestCase


# With processes


@pytest.fixture
def collection(indexed: Indexed, tmp_path: Path) -> Path:
    folder = tmp_path / "own.cairn"
    shutil.copytree(indexed.folder, folder)
    return folder


def test_a_command_runs_and_tells_how_far_it_is(collection: Path, queue: Queue) -> None:
    job = add(queue, collection.name, "check")
    seen = set()

    def ended() -> bool:
        now = queue.job(job.id)
        seen.add((now.title_of_step, now.of > 0))
        return now.state in ENDED

    until(ended, 120, NICE)
    result = queue.job(job.id).result
    assert (state(queue, job), result and result["ok"]) == ("done", True), queue.job(job.id)
    assert any(title and counted for title, counted in seen), seen


@pytest.mark.slow
def test_a_locked_collection_is_waited_for(collection: Path, queue: Queue) -> None:
    with lock_folder(collection):
        job = add(queue, collection.name)
        note = until(lambda: queue.job(job.id).note, nice=NICE)
        assert "waits" in note
        assert state(queue, job) == "queued"
    until(lambda: state(queue, job) == "done", nice=NICE)


SERVER = """
import sys, time
from pathlib import Path
from retrieval.jobs.queue import Queue
folder = Path(sys.argv[1])
queue = Queue(folder / "jobs.sqlite", lambda name: folder / name, [Path(sys.argv[2])])
queue.start()
print("ready", flush=True)
time.sleep(600)
"""


def serve(folder: Path, root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SERVER, str(folder), str(root)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    return server


def children(pid: int) -> list[int]:
    """All processes below one."""
    import psutil

    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def is_there(pid: int) -> bool:
    import psutil

    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("moment", [0.3, 1.5, 2.5, 4.0, 6.0])
def test_killed_at_any_moment_it_goes_on_after_a_restart(moment: float, indexed: Indexed, tmp_path: Path) -> None:
    collection = tmp_path / "new.cairn"
    collection.mkdir()
    queue = open_queue(tmp_path, [indexed.photos])
    job = queue.add("new.cairn", kinds.index_of([indexed.photos]))
    server = serve(tmp_path, indexed.photos)
    time.sleep(moment)
    below = children(server.pid)
    server.kill()
    server.wait()
    until(lambda: not any(map(is_there, below)), 10)  # the job's processes have ended with their server
    server = serve(tmp_path, indexed.photos)
    running = until(lambda: queue.job(job.id).state in ENDED or children(server.pid))
    if isinstance(running, list):
        for pid in running[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # the job alone, this time
    until(lambda: queue.job(job.id).state in ENDED, 120, NICE)
    found = queue.job(job.id)
    server.terminate()
    server.wait()
    assert found.state == "done", found
    assert found.result is not None
    assert found.result["images"] == len(list(indexed.photos.iterdir()))


@pytest.mark.slow
def test_a_paused_job_ends_with_its_server_and_stays_paused(indexed: Indexed, tmp_path: Path) -> None:
    import psutil

    queue = open_queue(tmp_path, [indexed.photos])
    queue.start()
    job = queue.add("new.cairn", kinds.index_of([indexed.photos]))
    until(lambda: queue.job(job.id).of, nice=NICE)
    queue.pause(job.id)
    stood = until(
        lambda: [pid for pid in children(os.getpid()) if psutil.Process(pid).status() == psutil.STATUS_STOPPED]
    )
    reached = queue.job(job.id).done
    time.sleep(1)
    assert queue.job(job.id).done == reached
    queue.resume(job.id)
    until(lambda: queue.job(job.id).done > reached or state(queue, job) == "done")
    if state(queue, job) == "running":
        queue.pause(job.id)
    queue.stop()
    until(lambda: not any(map(is_there, stood)), 10)
    assert state(queue, job) in ("paused", "done")


@pytest.mark.slow
def test_what_is_paused_does_not_outlive_a_killed_server(indexed: Indexed, tmp_path: Path) -> None:
    import psutil

    queue = open_queue(tmp_path, [indexed.photos])
    job = queue.add("new.cairn", kinds.index_of([indexed.photos]))
    server = serve(tmp_path, indexed.photos)
    below = until(lambda: state(queue, job) == "running" and children(server.pid))
    time.sleep(1.0)
    os.killpg(below[0], signal.SIGSTOP)
    # Where other programs run, it is a while before it stands still, and only what does is woken with its server's end.
    until(lambda: psutil.Process(below[0]).status() == psutil.STATUS_STOPPED)
    below = children(server.pid)
    # The system wakes and ends what stands still when its server dies, so it has to stand still by then.
    until(lambda: all(psutil.Process(pid).status() == psutil.STATUS_STOPPED for pid in below))
    server.kill()
    server.wait()
    until(lambda: not any(map(is_there, below)), 10)


@pytest.mark.slow
def test_cancelling_ends_a_command_and_its_workers(indexed: Indexed, tmp_path: Path, queue: Queue) -> None:
    queue.roots = (indexed.photos,)
    others = set(children(os.getpid()))  # of other tests
    job = queue.add("new.cairn", kinds.index_of([indexed.photos]))
    until(lambda: queue.job(job.id).of, nice=NICE)
    queue.pause(job.id)
    below = set(children(os.getpid())) - others
    queue.cancel(job.id)
    until(lambda: state(queue, job) == "cancelled", 15)
    assert below and not any(map(is_there, below))


def test_time_is_promised_by_how_fast_the_work_itself_gets_on() -> None:
    child, clock = Child(["--version"], lambda: None, {"look": 0.02, "extract": 0.98}), [0.0]
    child.wait()
    child._pace = Pace(lambda: clock[0])
    for seconds, step, done, of, left in (
        (0, "look", 50, 50, None),
        (60, "extract", 0, 100, None),  # processes were begun meanwhile
        (62, "extract", 2, 100, None),
        (64, "extract", 4, 100, 96),
    ):
        clock[0] = seconds
        line = json.dumps({"step": step, "title": "", "done": done, "of": of, "unit": ""})
        child._listen(io.BytesIO(line.encode() + b"\n"))
        assert child.seconds_left == (left and pytest.approx(left, rel=0.01))
    child.close()


def test_no_signal_goes_to_a_process_that_was_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child(["--version"], lambda: None)
    child.wait()
    signalled: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *given: signalled.append(given))
    monkeypatch.setattr(os, "killpg", lambda *given: signalled.append(given))
    for act in (child.pause, child.go_on, child.interrupt, child.kill):
        act()
    assert signalled == [], "its number may be that of another process by now"
    child.close()
