"""A temporary PostgreSQL server for tests, if its programs are installed."""

import contextlib
import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# A server refuses to run as root, so root runs it as the user of PostgreSQL's packages.
SERVER_USER = "postgres"


class Server:
    """A server in a new folder, started on entering the block, stopped and removed afterwards."""

    def __init__(self) -> None:
        self._psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
        programs = _programs()
        if programs is None:
            pytest.skip("PostgreSQL's initdb and pg_ctl are neither in PATH nor in /usr/lib/postgresql")
        self._programs = programs
        self._as_user = _as_user()
        # Not below pytest's folder, which is private to its owner; and short enough for a socket's name.
        self.folder = Path(tempfile.mkdtemp(prefix="cairn-pg-"))
        self.user = SERVER_USER if self._as_user else getpass.getuser()
        self.data = self.folder / "data"
        self._made = 0

    def __enter__(self) -> "Server":
        try:
            if self._as_user:
                shutil.chown(self.folder, SERVER_USER)
            options = ("-U", self.user, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
            self._run("initdb", "-D", str(self.data), *options)
            self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            with contextlib.suppress(RuntimeError):
                self.stop()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        # Only on a socket in its folder: no clash of ports, no access from outside. fsync off: the cluster is
        # temporary.
        options = f"-k {self.folder} -c listen_addresses= -c fsync=off"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.data), "-w", "-l", log, "-o", options, "start")

    def stop(self, how: str = "immediate") -> None:
        """Stop it: "immediate", like a crash, or "fast", closing connections and flushing data."""
        self._run("pg_ctl", "-D", str(self.data), "-m", how, "-w", "stop")

    def new_database(self) -> str:
        """Make an empty database, and return its SQLAlchemy address."""
        self._made += 1
        with self._psycopg.connect(
            host=str(self.folder), user=self.user, dbname="postgres", autocommit=True
        ) as connection:
            connection.execute(f"CREATE DATABASE cairn{self._made}")
        return f"postgresql+psycopg://{self.user}@/cairn{self._made}?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as_user, str(self._programs / program), *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stdout}")


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[[], str]]:
    """Makes an empty database at each call, and returns its SQLAlchemy address; skips without a server."""
    with Server() as server:
        yield server.new_database


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """A server that a test may stop, or whose files it may damage."""
    with Server() as server:
        yield server


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl: from PATH, else Debian's newest."""
    in_path = shutil.which("pg_ctl")
    folders = [Path(in_path).parent] if in_path else []
    debian = Path("/usr/lib/postgresql")
    if debian.is_dir():
        versions = sorted(
            debian.iterdir(), key=lambda path: [int(part) for part in path.name.split(".") if part.isdecimal()]
        )
        folders += [version / "bin" for version in reversed(versions)]
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pg_ctl").exists()), None)


def _as_user() -> list[str]:
    if os.geteuid() != 0:
        return []
    try:
        pwd.getpwnam(SERVER_USER)
    except KeyError:
        pytest.skip(f"PostgreSQL does not run as root, and there is no user {SERVER_USER} to run it as")
    if shutil.which("runuser") is None:
        pytest.skip("PostgreSQL does not run as root, and there is no runuser to run it as another user")
    return ["runuser", "-u", SERVER_USER, "--"]
