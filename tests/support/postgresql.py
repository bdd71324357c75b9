"""A throw-away PostgreSQL server for the tests, where the machine has its programs."""

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

# A server refuses to run as root, so root runs it as the user that packages of PostgreSQL make.
SERVER_USER = "postgres"


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[[], str]]:
    """Makes an empty database at each call, and returns its SQLAlchemy address; skips where there is no server."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's initdb and pg_ctl are neither in PATH nor in /usr/lib/postgresql")
    as_user = _as_user()
    # Not below pytest's folder, whose parents only its owner may enter, and short enough for a socket's name.
    folder = Path(tempfile.mkdtemp(prefix="cairn-pg-"))
    user = SERVER_USER if as_user else getpass.getuser()

    def run(program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*as_user, str(programs / program), *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stdout}")

    try:
        if as_user:
            shutil.chown(folder, SERVER_USER)
        data = str(folder / "data")
        run("initdb", "-D", data, "-U", user, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        # On a socket in a folder of its own only: no port to clash with, nothing to reach from outside. fsync off: the
        # cluster is thrown away.
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        run("pg_ctl", "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start")
        made = 0

        def make() -> str:
            nonlocal made
            made += 1
            with psycopg.connect(host=str(folder), user=user, dbname="postgres", autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE cairn{made}")
            return f"postgresql+psycopg://{user}@/cairn{made}?host={folder}"

        try:
            yield make
        finally:
            with contextlib.suppress(RuntimeError):
                run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl: that in PATH, else the newest of Debian's."""
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
