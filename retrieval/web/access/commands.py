"""The commands password and token."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from index.errors import CairnError
from retrieval.commands.console import say
from retrieval.web.access.roles import Role

if TYPE_CHECKING:
    from retrieval.web.access.passwords import Entry

PasswordsFile = Annotated[Path, typer.Argument(help="File of passwords and tokens; made where it is not there.")]
RoleOption = Annotated[
    Role, typer.Option(help="read: look, search and take away; write: change what is known of photos, and add some.")
]
Remove = Annotated[bool, typer.Option("--remove", help="Take it out of the file.")]


def password(
    file: PasswordsFile,
    name: Annotated[str, typer.Argument(help="Who signs in with it.")],
    role: RoleOption = Role.WRITE,
    remove: Remove = False,
) -> None:
    """Set the password of one who may sign in to cairn serve --password-file FILE.

    It is asked for twice, or read as one line from standard input where that is no terminal. The file keeps an Argon2
    hash of it, and only its owner may read it. A server that runs takes the change at once: whoever was signed in with
    another password has to sign in again.
    """
    from retrieval.web.access.passwords import Entry, check_name, hash_password

    check_name(name)
    if remove:
        _remove(file, name, token=False)
        return
    _change(file, Entry(name, role, hash_password(_ask())), "password")


def token(
    file: PasswordsFile,
    name: Annotated[str, typer.Argument(help="What program, or whose, it is for.")],
    role: RoleOption = Role.READ,
    remove: Remove = False,
) -> None:
    """Draw a token with which a program may ask cairn serve --password-file FILE, and print it.

    Programs send it as the header "Authorization: Bearer TOKEN". The file keeps a hash of it: it is printed this once.
    A token that the name had is no longer taken.
    """
    from retrieval.web.access.passwords import Entry, check_name, new_token

    check_name(name)
    if remove:
        _remove(file, name, token=True)
        return
    drawn, kept = new_token()
    _change(file, Entry(name, role, kept), "token")
    print(drawn)


def _change(file: Path, entry: "Entry", what: str) -> None:
    from retrieval.web.access.passwords import change_entry

    before = change_entry(file, entry.name, token=entry.is_token, entry=entry)
    print(f"{file}: {entry.name} has a {'new ' if before else ''}{what} ({entry.role}).", file=sys.stderr)


def _remove(file: Path, name: str, *, token: bool) -> None:
    from retrieval.web.access.passwords import change_entry

    if not file.exists() or not change_entry(file, name, token=token, entry=None):
        raise CairnError(f"{file} has no {'token' if token else 'password'} of {name}.")
    say(f"{file}: {name} is out.")


def _ask() -> str:
    """Ask for a password, twice; or read it from standard input."""
    from getpass import getpass

    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass("Password: ")
    if getpass("Again: ") != first:
        raise CairnError("The two passwords differ: nothing was changed.")
    return first
