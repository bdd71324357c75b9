"""Rows of a queue that nobody wrote so: each fails with one sentence, and the next job is done."""

import contextlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from index.errors import CairnError
from retrieval.jobs import kinds
from retrieval.jobs.kinds import KINDS, OutsideError
from retrieval.jobs.opening import ALONE, queue_below, queue_of
from retrieval.jobs.queue import Queue
from retrieval.jobs.store import ENDED, read_result
from retrieval.state.folder import STATE
from tests.support.live import until

COLUMNS = ("id", "kind", "collection", "told", "state", "result", "error", "added", "started", "ended")


class Quick:
    """Takes the place of a process that is done at once."""

    commands: list[list[str]] = []  # noqa: RUF012 (of all of them)
    printed = "{}"

    def __init__(self, command: list[str], told: object, parts: object = None) -> None:
        from retrieval.jobs.running import Reached

        self.reached, self.share, self.seconds_left = Reached(), None, None
        Quick.commands.append(command)

    def wait(self) -> int:
        return 0

    def result(self) -> dict[str, Any] | None:
        return read_result(Quick.printed)

    def complaint(self) -> str:
        return ""

    def close(self) -> None: ...
    def go_on(self) -> None: ...
    def pause(self) -> None: ...
    def interrupt(self) -> None: ...
    def kill(self) -> None: ...


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retrieval.jobs.queue.Child", Quick)
    monkeypatch.setattr("retrieval.jobs.queue.LOOK", 0.01)
    monkeypatch.setattr(Quick, "commands", [])
    monkeypatch.setattr(Quick, "printed", "{}")


def find_only(folder: Path, *names: str) -> Any:
    def find(name: str) -> Path:
        if name not in names:
            raise CairnError("There is no such collection.")
        return folder / name

    return find


def put(file: Path, **values: object) -> int:
    """Write a row past everything that checks it."""
    with contextlib.closing(sqlite3.connect(file, timeout=30)) as connection, connection:
        usual = {"kind": "compact", "collection": "a", "told": "{}", "state": "queued", "added": "2026-01-01"}
        row = {**usual, **values}
        marks = ", ".join("?" * len(row))
        made = connection.execute(f"INSERT INTO jobs ({', '.join(row)}) VALUES ({marks})", [*row.values()])
        assert made.lastrowid is not None
        return made.lastrowid


@contextlib.contextmanager
def working(folder: Path, roots: tuple[Path, ...] = ()) -> Iterator[Queue]:
    """A queue at work, whose file is there."""
    queue = Queue(folder / "jobs.sqlite", find_only(folder, "a", "b"), roots)
    queue.start()
    queue.add("b", kinds.CheckJob())
    yield queue
    queue.stop()


def goes_on(queue: Queue) -> None:
    """One more job is done, and none is left that has not ended."""
    job = queue.add("b", kinds.CheckJob())
    until(lambda: queue.job(job.id).state == "done")
    until(lambda: all(one.state in ENDED for one in queue.jobs()))


@pytest.mark.parametrize(
    "row",
    [
        {"kind": "serve", "told": '{"port": 8001, "password_file": "/tmp/own"}'},
        {"kind": "metadata", "told": '{"export": "/site-packages/evil.pth"}'},
        {"kind": "remove", "told": '{"names": ["x"], "for_good": true, "collection": "/other.cairn"}'},
        {"kind": "remove", "told": '{"names": "abc"}'},
        {"kind": "remove", "told": '{"names": ["a\\u0000b"]}'},
        {"kind": "remove", "told": json.dumps({"names": ["x" * 5000]})},
        {"kind": "remove", "told": json.dumps({"names": ["x"] * (kinds.MOST + 1)})},
        {"kind": "remove", "told": '{"names": ["\\ud800"]}'},
        {"kind": "index", "told": '{"places": ["../relative"]}'},
        {"kind": "index", "told": '{"places": []}'},
        {"kind": "index", "told": '{"places": ["/etc"]}'},
        {"kind": "group", "told": '{"augment": 1}'},
        {"kind": "group", "told": "["},
        {"kind": "group", "told": "[" * 100_000},
        {"kind": "group", "told": "null"},
        {"collection": "/other.cairn"},
        {"collection": "../b"},
        {"collection": "c"},
        {"collection": ""},
        {"id": -5},
        {"state": "waiting"},
        {"state": b"queued"},
        {"told": b"{}"},
        {"kind": b"\xff"},
        {"added": b"\x00"},
        {"told": "{" + " " * (33 << 20) + "}"},
    ],
    ids=lambda row: str(row)[:60],
)
def test_what_makes_no_sense_fails_and_the_next_is_done(row: dict[str, Any], quick: None, tmp_path: Path) -> None:
    with working(tmp_path) as queue:
        number = put(tmp_path / "jobs.sqlite", **row)
        job = until(lambda: (found := queue.job(number)).state == "failed" and found)
        assert str(job.error).endswith(".") and "\n" not in str(job.error)
        goes_on(queue)
    assert {tuple(command) for command in Quick.commands} == {("check", str(tmp_path / "b"), "--json")}


def test_what_says_that_it_runs_is_begun_again(quick: None, tmp_path: Path) -> None:
    with working(tmp_path) as queue:
        number = put(tmp_path / "jobs.sqlite", state="running")
        until(lambda: queue.job(number).state == "done")
        goes_on(queue)


@pytest.mark.parametrize(
    "printed", ["", "no JSON", "[1]", '{"a": ' * 5000, '{"a": "\\ud800"}', '{"error": ["x"]}', '{"a": 1e999}', "{}}"]
)
def test_a_command_that_prints_anything_ends_its_job(printed: str, quick: None, tmp_path: Path) -> None:
    with working(tmp_path) as queue:
        goes_on(queue)
        Quick.printed = printed
        job = queue.add("a", kinds.Compact())
        found = until(lambda: (found := queue.job(job.id)).state in ENDED and found)
        assert found.state == "failed" and found.error
        Quick.printed = "{}"
        goes_on(queue)


def test_whatever_goes_wrong_within_a_job_ends_that_job_alone(
    quick: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object) -> None:
        raise ZeroDivisionError

    with working(tmp_path) as queue:
        goes_on(queue)
        for name in ("__init__", "result"):
            with monkeypatch.context() as patch:
                patch.setattr(Quick, name, wrong)
                job = queue.add("a", kinds.Compact())
                until(lambda job=job: queue.job(job.id).state == "failed")
            goes_on(queue)
        queue.after.append(wrong)  # type: ignore[arg-type]
        goes_on(queue)
        goes_on(queue)


ANYTHING = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.binary(max_size=20),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from([*KINDS, "a", "b", "queued", "running", "paused", "done", "{}", "[]", '{"places": ["/"]}']),
    st.dictionaries(st.sampled_from(["names", "places", "missing", "augment"]), st.text(max_size=3)).map(json.dumps),
)


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(COLUMNS[1:], ANYTHING)), max_size=4),
    running=st.booleans(),
)
def test_rows_of_any_shape_end_no_work(quick: None, rows: list[dict[str, Any]], running: bool) -> None:
    Quick.commands.clear()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with working(folder) as queue:
            goes_on(queue)
            if not running:
                queue.stop()
            with contextlib.closing(sqlite3.connect(folder / "jobs.sqlite", timeout=30)) as connection:
                # As if what must not be NULL might be, which it is not when it is looked at.
                connection.execute("PRAGMA writable_schema = ON")
                (made,) = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'jobs'").fetchone()
                connection.execute(
                    "UPDATE sqlite_schema SET sql = ? WHERE name = 'jobs'", [made.replace("NOT NULL", "")]
                )
                connection.commit()
            for row in rows:
                put(folder / "jobs.sqlite", **row)
            with contextlib.closing(sqlite3.connect(folder / "jobs.sqlite", timeout=30)) as connection:
                connection.execute("PRAGMA writable_schema = ON")
                connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'jobs'", [made])
                connection.commit()
            queue.start()
            for job in queue.jobs():
                if job.state == "paused":
                    with contextlib.suppress(CairnError):  # it may have been refused, and so have ended, meanwhile
                        queue.resume(job.id)
            goes_on(queue)
            for job in queue.jobs():
                assert job.state in ENDED
    for command in Quick.commands:
        assert command[0] in KINDS and command[-1] != "/" and str(folder) in str(command)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER t AFTER UPDATE ON jobs BEGIN UPDATE jobs SET state = 'queued'; END",
        "CREATE VIEW v AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT * FROM n",
        "CREATE TABLE other (x)",
        "ALTER TABLE jobs ADD COLUMN command TEXT",
        "DROP INDEX ix_jobs_state",
        "DROP TABLE jobs",
        "INSERT INTO jobs (id, kind, collection, told, state, added) VALUES (9223372036854775807, '', '', '', '', '')",
    ],
    ids=lambda change: change[:24],
)
def test_a_list_with_anything_else_in_it_is_set_aside(change: str, quick: None, tmp_path: Path) -> None:
    with working(tmp_path):
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as connection, connection:
        connection.execute(change)
    with working(tmp_path) as queue:
        goes_on(queue)
        assert len(queue.jobs()) <= 2
    assert list(tmp_path.glob("jobs.sqlite.damaged-*"))


def test_a_view_without_end_in_the_place_of_the_table_is_not_asked(quick: None, tmp_path: Path) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id"
    with contextlib.closing(sqlite3.connect(tmp_path / "jobs.sqlite")) as connection, connection:
        connection.execute(f"CREATE VIEW jobs AS {endless}, {', '.join(f'x AS {one}' for one in COLUMNS[1:])} FROM n")
    with working(tmp_path) as queue:
        goes_on(queue)


# Where a queue lies


def test_a_queue_belongs_to_a_collection_at_its_place_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    identity = "0123456789abcdef" * 2
    from retrieval.collection.identity import write_identity

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_identity(tmp_path / name, identity)
    (tmp_path / "link").symlink_to(tmp_path / "a")

    def file(queue: Queue) -> Path:
        assert isinstance(queue._store.file, Path)
        return queue._store.file

    own = file(queue_of(tmp_path / "a", []))
    assert own.is_relative_to(tmp_path / "state" / "queues") and not list((tmp_path / "a").glob("jobs*"))
    assert file(queue_of(tmp_path / "link", [])) == own
    others = {file(queue_of(tmp_path / "b", [])), file(queue_below(tmp_path / "a", lambda name: tmp_path, []))}
    write_identity(tmp_path / "a", identity[::-1])
    others.add(file(queue_of(tmp_path / "a", [])))
    write_identity(tmp_path / "a", identity)
    monkeypatch.setattr("retrieval.jobs.opening._MACHINE", tmp_path / "none")
    monkeypatch.setattr("platform.node", lambda: "another")
    others.add(file(queue_of(tmp_path / "a", [])))
    assert len(others) == 4 and own not in others


def test_without_a_state_folder_all_but_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(STATE, str(tmp_path / "file" / "below"))
    queue = queue_of(tmp_path, [])
    queue.start()
    assert queue.jobs() == []
    with pytest.raises(CairnError, match=STATE):
        queue.add(ALONE, kinds.Compact())
    queue.stop()


# What photos may be taken from


def test_places_stay_below_the_roots_of_the_server_that_runs_now(quick: None, tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    for folder in (root / "in", secret, tmp_path / "a" / "uploads", tmp_path / "b"):
        folder.mkdir(parents=True)
    (root / "out").symlink_to(secret)
    (tmp_path / "b" / "uploads").symlink_to(secret)
    with working(tmp_path, (root,)) as queue:
        goes_on(queue)
        job = queue.add("a", kinds.index_of([root / "in", tmp_path / "a" / "uploads"]))
        until(lambda: queue.job(job.id).state == "done")
        assert Quick.commands[-1][:8] == [
            *("index", str(tmp_path / "a"), "--json", "--early"),
            *("--below", str(root), "--below", str(tmp_path / "a" / "uploads")),
        ]
        for place in (secret, root / "out", root / ".." / "secret", tmp_path, tmp_path / "b" / "uploads", Path("/")):
            with pytest.raises(OutsideError):
                queue.add("b", kinds.index_of([root / "in", place]))
        queue.stop()
        waiting = queue.add("a", kinds.index_of([root / "in"]))
        queue.roots = (secret,)  # as the next server has others
        queue.start()
        assert until(lambda: (found := queue.job(waiting.id)).state in ENDED and found).state == "failed"
        assert "does not take photos from that folder" in str(queue.job(waiting.id).error)


@pytest.mark.skipif(os.name != "posix", reason="paths are written otherwise")
def test_what_a_job_is_told_is_strict() -> None:
    for kind, told in (
        (kinds.IndexJob, {"places": ("/a",)}),
        (kinds.IndexJob, {"places": ["a"]}),
        (kinds.RemoveJob, {"names": [1]}),
        (kinds.RemoveJob, {}),
        (kinds.RemoveJob, {"missing": True, "for_good": True}),
        (kinds.Compact, {"export": "x"}),
        (kinds.MoveJob, {"old": "/a"}),
        (kinds.MoveJob, {"old": "/a", "new": "b"}),
    ):
        with pytest.raises(ValidationError):
            kind(**told)
    for kind in KINDS.values():
        works = {"index": {"places": ["/a"]}, "remove": {"names": ["-a"]}, "move": {"old": "/a", "new": "/b"}}
        work: dict[str, Any] = works.get(kind.kind, {})
        made = kind(**work)
        assert kinds.read(made.kind, made.model_dump_json()) == made
