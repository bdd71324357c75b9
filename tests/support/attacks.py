"""Attacks by tampered collections from others: catalogues, job queues and segments.

The first cases are attacks that once succeeded; the others are drawn by their number, so that each can be repeated
alone. Commands run in processes forked from one that has
imported everything and has no threads (scripts/attack.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.patience import patience
from tests.support.strangers import CATALOGUE, describe, digest_tree

SECONDS = 60.0  # that a command may take on an idle machine
SERVED = 4.0  # seconds that a server runs
COMMANDS_EACH = 2  # commands run on a tampered collection

# Values of names, paths and settings that point elsewhere or have a meaning for another program.
TEXTS = (
    *(
        "",
        ".",
        "..",
        "/",
        "../other.cairn",
        "../../other.cairn/segments",
        "../other.cairn/segments/000001",
        "a/../../b",
    ),
    *("{world}/other.cairn", "{world}/other.cairn/segments/000001", "{world}/victim.txt", "{world}/new.pth", "~root"),
    *(
        "segments/000001/../../../victim.txt",
        "a\0b",
        "\x1b[31m\n",
        "-rf",
        "--export",
        "; touch {world}/run",
        "$(reboot)",
    ),
    *(
        "postgresql+psycopg://127.0.0.1:1/x",
        "sqlite:///{world}/other.cairn/catalogue.sqlite",
        "s3://bucket/key",
        "x" * 5000,
    ),
    *("import os; os.system('touch {world}/run')", "é" * 300, "\u202egnp", "000001", "vocabulary-000009", "null", "{}"),
)
NUMBERS = (-1, 0, 1, 2, 255, 2**31 - 1, 2**31, 2**53, 2**63 - 1, -(2**63), 0.5, 1e300, None)
DEFINITIONS = (
    "CREATE TRIGGER t{n} AFTER UPDATE ON settings BEGIN DELETE FROM images; END",
    "CREATE TRIGGER t{n} BEFORE INSERT ON segments BEGIN UPDATE segments SET folder = '../../other.cairn/x'; END",
    "CREATE TRIGGER t{n} AFTER DELETE ON images BEGIN UPDATE images SET path = '{world}/victim.txt'; END",
    "CREATE VIEW v{n} AS SELECT load_extension('{world}/victim.so')",
    "CREATE INDEX i{n} ON images (abs(number))",
    "CREATE TABLE x{n} (a, b AS (a || zeroblob(100000000)))",
    "CREATE VIRTUAL TABLE f{n} USING fts5(a)",
    "CREATE TABLE x{n} (a CHECK (length(zeroblob(100000000)) > 0))",
)
QUEUE_DEFINITIONS = (
    "CREATE TRIGGER t{n} AFTER UPDATE ON jobs BEGIN DELETE FROM jobs; END",
    "CREATE TRIGGER t{n} AFTER UPDATE ON jobs BEGIN UPDATE jobs SET kind = 'remove', collection = '{world}'; END",
    "CREATE INDEX i{n} ON jobs (abs(told))",
    *(statement for statement in DEFINITIONS if "x{n}" in statement or "f{n}" in statement or "v{n}" in statement),
)
EMPTY = (
    "INSERT INTO segments (folder, images, features, bytes, vocabulary_fingerprint, descriptor_fingerprint, created) "
    "SELECT '{}', 0, 0, 0, vocabulary_fingerprint, descriptor_fingerprint, created FROM segments LIMIT 1"
)
ENDLESS = "WITH RECURSIVE e(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM e) SELECT {columns} FROM e"
JOB = [
    *(
        ["remove", "{world}/other.cairn", "--for-good", "--", "rocket0.png"],
        ["remove", "{world}/other.cairn", "--json", "rocket0.png"],
    ),
    *(["metadata", "{world}/other.cairn", "--export", "{world}/new.pth"], ["compact", "{world}/other.cairn", "--json"]),
    *(["serve", "{world}/other.cairn", "--photos", "/", "--port", "0"], [], "no list", {"a": 1}, None, [1, None]),
]


@dataclass
class World:
    """A folder with a tampered collection, and other files that must not be touched."""

    folder: Path
    queries: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.album, self.other = self.folder / "album.cairn", self.folder / "other.cairn"
        self.photos, self.scratch = self.folder / "photos", self.folder / "scratch"
        self.sound = self.folder / "sound.cairn"

    @classmethod
    def make(cls, folder: Path, index: Callable[[Path, Path], None]) -> World:
        """Make one; `index` makes a collection of a folder of photos."""
        from tests.support.hostile import encode, photo

        world = cls(folder)
        world.photos.mkdir(parents=True)
        for name in ("astronaut", "chelsea", "coffee", "rocket"):
            for place in range(2):
                picture = photo(name, (200 + 16 * place, 160 + 12 * place))
                (world.photos / f"{name}{place}.png").write_bytes(encode(picture, "PNG"))
        world.queries = sorted(world.photos.glob("*0.png"))
        for made in (world.sound, world.other):
            index(made, world.photos)
        for name in ("victim.txt", "victim.so"):
            (folder / name).write_text("not yours")
        world.scratch.mkdir()
        return world

    def set_up(self) -> None:
        """Restore the collection before tampering."""
        remove(self.album)
        shutil.copytree(self.sound, self.album)
        remove(self.scratch)
        self.scratch.mkdir()

    def surroundings(self) -> dict[str, tuple[int, str]]:
        """All files outside the collection, with checksums."""
        own = {self.album.name, self.scratch.name}
        # Readers of an SQLite database leave journal files next to it, which are ignored.
        return {
            name: reported
            for name, reported in digest_tree(self.folder).items()
            if Path(name).parts[0] not in own and not name.endswith(("-wal", "-shm"))
        }


def remove(path: Path) -> None:
    """Remove a file or folder of any kind."""
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)


# --------------------------------------------------------------------------------------------------------- tampering


def tamper_catalogue(draw: random.Random, world: World) -> list[str]:
    """Change the catalogue once to three times; return descriptions."""
    file = world.album / CATALOGUE
    if draw.random() < 0.1:
        return [_replace(draw, world, file)]
    if draw.random() < 0.1:
        return [_flip(draw, file)]
    done = []
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        for _ in range(draw.randint(1, 3)):
            change = draw.choice(
                (_change_value, _change_value, _change_folder, _define, _endless_view, _drop, _add_job)
            )
            try:
                done.append(change(draw, world, database))
            except sqlite3.Error as error:  # what SQLite itself does not take
                done.append(f"(refused: {error})")
    if draw.random() < 0.3:
        # State left by a killed process, which the next takes over.
        for name in ("catalogue.snapshot", "collection.sums", "collection.statistics"):
            if draw.random() < 0.5:
                done.append(f"without {name}")
                (world.album / name).unlink(missing_ok=True)
    return done


def _tables(database: sqlite3.Connection) -> list[str]:
    return [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def _change_value(draw: random.Random, world: World, database: sqlite3.Connection) -> str:
    table = draw.choice([name for name in _tables(database) if not name.startswith("sqlite_")])
    rows = [row for (row,) in database.execute(f'SELECT rowid FROM "{table}"')]
    columns = [column[1] for column in database.execute(f'PRAGMA table_info("{table}")')]
    if not rows:
        values = [_text(draw, world) if draw.random() < 0.5 else draw.choice(NUMBERS) for _ in columns]
        database.execute(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})', values)
        return f"a row in {table}: {values!r:.200}"
    column, row = draw.choice(columns), draw.choice(rows)
    value: Any = _text(draw, world) if draw.random() < 0.6 else draw.choice((*NUMBERS, b"\xff\0"))
    where, given = ("", ()) if draw.random() < 0.2 else (" WHERE rowid = ?", (row,))
    database.execute(f'UPDATE OR REPLACE "{table}" SET "{column}" = ?{where}', (value, *given))
    return f"{table}.{column} = {value!r:.100}"


def _change_folder(draw: random.Random, world: World, database: sqlite3.Connection, value: str = "") -> str:
    value = value.replace("{world}", str(world.folder)) or _text(draw, world)
    database.execute("UPDATE segments SET folder = ?, sha256 = NULL WHERE id = ?", (value, draw.randint(1, 2)))
    return f"segments.folder = {value!r:.100}"


def _define(draw: random.Random, world: World, database: sqlite3.Connection, statement: str = "") -> str:
    statement = (statement or draw.choice(DEFINITIONS)).format(world=world.folder, n=draw.randrange(1000))
    database.execute(statement)
    return statement


def _endless_view(draw: random.Random, world: World, database: sqlite3.Connection, table: str = "") -> str:
    table = table or draw.choice([name for name in _tables(database) if not name.startswith("sqlite_")])
    columns = ", ".join(f'n AS "{column[1]}"' for column in database.execute(f'PRAGMA table_info("{table}")'))
    database.execute(f'ALTER TABLE "{table}" RENAME TO "kept_{table}"')
    database.execute(f'CREATE VIEW "{table}" AS {ENDLESS.format(columns=columns)}')
    return f"{table} is an endless view"


def _drop(draw: random.Random, world: World, database: sqlite3.Connection) -> str:
    kinds = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' AND type IN ('table', 'index')"
    kind, name = draw.choice(database.execute(f"{kinds} ORDER BY name").fetchall())
    database.execute(f'DROP {kind} "{name}"')
    return f"without the {kind} {name}"


def _add_job(draw: random.Random, world: World, database: sqlite3.Connection, command: Any = ()) -> str:
    """Put a job queue into the collection, where older versions stored it."""
    command = draw.choice(JOB) if command == () else command
    text = json.dumps(command).replace("{world}", str(world.folder))
    with contextlib.closing(sqlite3.connect(world.album / "jobs.sqlite", isolation_level=None)) as jobs:
        jobs.execute(
            "CREATE TABLE IF NOT EXISTS jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, collection TEXT, "
            "command TEXT, title TEXT, about TEXT, state TEXT, result TEXT, error TEXT, added TEXT, started TEXT, "
            "ended TEXT)"
        )
        row = (
            "check",
            str(world.album),
            text,
            "Check all files",
            "",
            draw.choice(("queued", "running", "paused", "x")),
        )
        jobs.execute(
            "INSERT INTO jobs (kind, collection, command, title, about, state, added) VALUES (?, ?, ?, ?, ?, ?, '')",
            row,
        )
    return f"work: {text:.100}"


def _text(draw: random.Random, world: World) -> str:
    return draw.choice(TEXTS).replace("{world}", str(world.folder))


def tamper_segments(draw: random.Random, world: World) -> list[str]:
    """Change files of segments, the vocabulary or the options once to three times; return descriptions."""
    done = []
    for _ in range(draw.randint(1, 3)):
        files = sorted(
            path
            for path in world.album.rglob("*")
            if path.is_file()
            and not path.is_symlink()
            and not path.name.startswith("catalogue")
            and "cache" not in path.parts
        )
        segments = [path for path in files if "segments" in path.parts]
        file = draw.choice(segments if segments and draw.random() < 0.7 else files)
        changes = [_flip_one, _cut, _replace]
        if file.suffix == ".npy":
            changes += [_reshape] * 4
        if file.suffix in (".json", ".toml"):
            changes += [_change_words] * 4
        done.append(draw.choice(changes)(draw, world, file))
    if draw.random() < 0.7:
        _sign(world)
        done.append("signed")
    return done


def _sign(world: World) -> None:
    """Update the checksums to the tampered files, as an attacker would."""
    (world.album / "collection.sums").unlink(missing_ok=True)
    for folder in (world.album / "segments").iterdir():
        with contextlib.suppress(Exception):  # too damaged to be signed
            if all(path.is_file() for path in folder.iterdir()):  # reading a pipe would block
                describe(world.album, folder.name)


def _flip_one(draw: random.Random, world: World, file: Path) -> str:
    return _flip(draw, file)


def _flip(draw: random.Random, file: Path) -> str:
    found = bytearray(file.read_bytes())
    places = [draw.randrange(len(found)) for _ in range(draw.choice((1, 1, 10, 100)))] if found else []
    for place in places:
        found[place] = draw.randrange(256)
    file.write_bytes(found)
    return f"{file.name}: {len(places)} bytes changed"


def _cut(draw: random.Random, world: World, file: Path) -> str:
    size = file.stat().st_size
    left = draw.choice((0, 1, size // 2, max(0, size - 1), size + 4096))
    os.truncate(file, left)
    return f"{file.name}: {left} of {size} bytes"


def _replace(draw: random.Random, world: World, file: Path) -> str:
    """Replace a file by something else."""
    targets = {
        "device": ["/dev/zero", "/dev/tty"],
        "nobody": [str(world.folder / "no one")],
        "link": ["/etc/passwd", str(world.folder / "victim.txt"), str(world.other / file.relative_to(world.album))],
    }
    kind = draw.choice(("fifo", "link", "folder", "nothing", *targets))
    file.unlink()
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    elif kind != "nothing":
        file.symlink_to(draw.choice(targets[kind]))
    return f"{file.name}: {kind}"


def _reshape(draw: random.Random, world: World, file: Path) -> str:
    """Change the header of an array, without its data."""
    found = file.read_bytes()
    if len(found) < 10:
        return f"{file.name}: cut off before"
    (length,) = struct.unpack_from("<H", found, 8)
    shapes = (
        "()",
        "(0,)",
        "(1,)",
        "(1, 1)",
        "(3, 1)",
        "(1, 3)",
        "(-1,)",
        "(10, 2, 2)",
        "(4611686018427387904, 4)",
        "None",
    )
    descriptions = ("'<f4'", "'|u1'", "'<i8'", "'|O'", "'<f8'", "'>u2'", "'|V8'", "'<U9'")
    header = f"{{'descr': {draw.choice(descriptions)}, 'fortran_order': {draw.choice(('False', 'True'))}, "
    header += f"'shape': {draw.choice(shapes)}, }}"
    data = found[10 + length :] if draw.random() < 0.7 else bytes(draw.choice((0, 1, 8, 4096)))
    file.write_bytes(found[:8] + struct.pack("<H", len(header) + 1) + header.encode() + b"\n" + data)
    return f"{file.name}: {header}"


def _change_words(draw: random.Random, world: World, file: Path) -> str:
    """Change one value of a text."""
    lines = file.read_text(errors="replace").splitlines()
    if not lines:
        return f"{file.name}: empty"
    place = draw.randrange(len(lines))
    value = json.dumps(_text(draw, world)) if draw.random() < 0.6 else str(draw.choice(NUMBERS))
    if file.suffix == ".json":
        found = json.loads(file.read_text())
        inner = found
        while isinstance(inner, dict) and inner:
            key = draw.choice(sorted(inner))
            if not isinstance(inner[key], dict) or draw.random() < 0.3:
                inner[key] = json.loads(value) if value != "None" else None
                break
            inner = inner[key]
        file.write_text(json.dumps(found))
        return f"{file.name}: {value:.80}"
    lines[place] = f"{lines[place].partition('=')[0]}= {value}"
    file.write_text("\n".join(lines))
    return f"{file.name}: {lines[place]:.80}"


REPLAYED: tuple[tuple[Callable[..., str], Any, tuple[str, ...]], ...] = (
    *((_change_folder, "../../other.cairn/segments", (name,)) for name in ("compact", "check", "repair", "query")),
    *((_change_folder, "../../other.cairn/segments/000001", ("remove", name)) for name in ("compact", "retrain")),
    *((_change_folder, "{world}/other.cairn/segments/000001", ("remove", name)) for name in ("compact", "index")),
    (_define, EMPTY.format("../../other.cairn/segments"), ("compact", "repair")),
    (_define, EMPTY.format("../../other.cairn/segments/000001"), ("remove", "compact")),
    *((_define, statement, ("remove", "compact")) for statement in DEFINITIONS),
    *((_endless_view, table, ("info", "query")) for table in ("images", "settings", "segments", "saved_searches")),
    *((_add_job, command, ("serve",)) for command in JOB),
)
"""Attacks that once succeeded: a change of the catalogue, its values, and commands."""


def tamper_queue(draw: random.Random, world: World) -> list[str]:
    """Write unchecked rows into the job queue of a server of the collection."""
    from retrieval.jobs.kinds import KINDS, CheckJob
    from retrieval.jobs.opening import ALONE, queue_of
    from retrieval.jobs.store import STATES

    queue = queue_of(world.album, [])
    queue.add(ALONE, CheckJob())
    file = queue._store.file
    assert isinstance(file, Path)
    queue.stop()
    done = []
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as database:
        if draw.random() < 0.2:
            if draw.random() < 0.5:
                return [_drop(draw, world, database)]
            return [_define(draw, world, database, draw.choice(QUEUE_DEFINITIONS))]
        columns = [column[1] for column in database.execute("PRAGMA table_info(jobs)")]
        for _ in range(draw.randint(1, 4)):
            row: dict[str, Any] = {
                "kind": draw.choice(sorted(KINDS)),
                "collection": draw.choice(("", "", world.other.name, str(world.other))),
                "told": json.dumps(_told(draw, world)),
                "state": draw.choice(STATES[:3]),
                "added": "2026-01-01",
            }
            if draw.random() < 0.5:
                row[draw.choice(columns)] = _text(draw, world) if draw.random() < 0.5 else draw.choice(NUMBERS[:-1])
            marks = ", ".join("?" * len(row))
            with contextlib.suppress(sqlite3.Error):  # what SQLite itself does not take
                database.execute(f"INSERT INTO jobs ({', '.join(row)}) VALUES ({marks})", [*row.values()])
                done.append(f"{row!r:.200}")
    return done


def _told(draw: random.Random, world: World) -> Any:
    """Arguments of a job that no page would send."""
    names = [_text(draw, world), "chelsea0.png", str(world.other)]
    found: Sequence[Any] = (
        {"names": names, "for_good": True},
        {"places": [str(world.folder), "/etc"]},
        {"places": [str(world.other)], "export": str(world.folder / "new.pth")},
        {"missing": True, "collection": str(world.other)},
        draw.choice(JOB),
        {},
    )
    return draw.choice(found)


TAMPERING: dict[str, Callable[[random.Random, World], list[str]]] = {
    "catalogues": tamper_catalogue,
    "segments": tamper_segments,
    "queues": tamper_queue,
}


# ---------------------------------------------------------------------------------------------------------- commands


def command_of(draw: random.Random, world: World, name: str | None = None) -> list[str]:
    """Draw a command on a collection, with a given name or any."""
    album, photo = str(world.album), str(draw.choice(world.queries))
    found: Sequence[list[str]] = (
        ["query", album, photo, "--json"],
        ["query", album, photo, "--json", "--engine", "signatures-sp"],
        ["info", album, "--json"],
        ["check", album, "--json"],
        ["repair", album],
        ["compact", album],
        ["group", album],
        ["remove", album, "chelsea0.png"],
        ["remove", album, "--missing"],
        ["retrain", album],
        ["index", album, str(world.photos), "--workers", "1"],
        ["index", album, "--workers", "1"],
        ["metadata", album, "--refresh"],
        ["metadata", album, "--export", str(world.scratch / "table.csv")],
        ["searches", "ask", album],
        ["serve", album, "--port", "0", "--workers", "1"],
    )
    return draw.choice(found) if name is None else next(one for one in found if one[0] == name)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # below 0: by a signal
    err: str


def run(arguments: Sequence[str], scratch: Path, seconds: float = SECONDS) -> Ended:
    """Run `cairn ARGUMENTS…` in a fork of this process."""
    err = scratch / "err.txt"
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDWR)
            reported = os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for old, new in ((null, 0), (null, 1), (reported, 2)):
                os.dup2(old, new)
            signal.setitimer(signal.ITIMER_REAL, patience(seconds))
            from cairn import main

            sys.argv = ["cairn", *arguments]
            try:
                main()
                code = 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            sys.stderr.flush()
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(code)
    if arguments[0] == "serve":
        _stop_later(child)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # possible leftovers
    return Ended(os.waitstatus_to_exitcode(status), err.read_text(errors="replace") if err.exists() else "")


def _stop_later(server: int) -> None:
    """Stop a server after a while, unless it has ended."""
    end = time.monotonic() + patience(SERVED)
    while time.monotonic() < end:
        if os.waitid(os.P_PID, server, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return
        time.sleep(0.05)
    os.kill(server, signal.SIGTERM)


def finding_of(ended: Ended) -> str | None:
    """Describe what is wrong with the end of a command, or None."""
    if ended.code == -signal.SIGALRM:
        return f"it has not ended after {SECONDS:g} s"
    if ended.code < 0 and ended.code != -signal.SIGTERM:
        return f"it crashed: {signal.Signals(-ended.code).name}"
    if "Traceback" in ended.err or ended.code not in (0, 1, 2, -signal.SIGTERM, 128 + signal.SIGTERM):
        return f"it broke: exit code {ended.code}: {ended.err[-1500:]}"
    reported = [line for line in ended.err.splitlines() if line.startswith("cairn: ")]
    lines = [line for line in reported if not line.endswith(" so far.")]  # its progress, after half a minute
    if ended.code == 2 and len(lines) != 1:
        return f"it refused without one sentence: {ended.err[-500:]!r}"
    if ended.code == 2 and len(lines[0]) > 1200:
        return f"its sentence has {len(lines[0])} characters"
    return None


def attack(kind: str, number: int, seed: int, world: World) -> tuple[list[str], list[str]]:
    """Tamper with the collection by a case, and run commands on it.

    Returns
    -------
    done : list of str
        Descriptions of the steps.
    findings : list of str
        Failures.
    """
    draw = random.Random(f"{seed} {kind} {number}")
    world.set_up()
    before, findings = world.surroundings(), []
    names: Sequence[str | None] = [None] * COMMANDS_EACH
    if kind == "catalogues" and number < len(REPLAYED):
        change, given, names = REPLAYED[number]
        with contextlib.closing(sqlite3.connect(world.album / CATALOGUE, isolation_level=None)) as database:
            done = [change(draw, world, database, given)]
        for file in ("collection.sums", "catalogue.snapshot", "collection.statistics"):  # unlike any sent one
            (world.album / file).unlink(missing_ok=True)
    else:
        done = TAMPERING[kind](draw, world)
    if kind == "queues":
        names = ["serve"]
    for name in names:
        arguments = command_of(draw, world, name)
        done.append(f"cairn {' '.join(arguments)}")
        ended = run(arguments, world.scratch)
        if finding := finding_of(ended):
            findings.append(f"{arguments[0]}: {finding}")
        after = world.surroundings()
        if after != before:
            changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
            findings.append(f"{arguments[0]}: it touched {', '.join(changed[:5])}")
            before = after
    return done, findings
