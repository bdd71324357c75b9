"""The commands password and token."""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from index.errors import CairnError
from index.text import printable_name
from retrieval.commands.console import say
from retrieval.web.access.roles import Role

if TYPE_CHECKING:
    from retrieval.web.access.passwords import PasswordEntry

PasswordsFile = Annotated[Path, typer.Argument(help="File of passwords and tokens; created if it does not exist.")]
RoleOption = Annotated[
    Role,
    typer.Option(
        help="read: view, search and download; write: also change what is known about photos, and add photos."
    ),
]
CollectionsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--collection",
        metavar="NAME",
        help="Show only this collection: the name of its folder, without the path to it. May be repeated; without it, "
        "all collections are shown.",
        show_default=False,
    ),
]
Remove = Annotated[bool, typer.Option("--remove", help="Remove the name from the file.")]


def password(
    file: PasswordsFile,
    name: Annotated[
        str | None, typer.Argument(help="Name to sign in with; without it, all names are listed.", show_default=False)
    ] = None,
    role: RoleOption = Role.WRITE,
    collection: CollectionsOption = None,
    no_password: Annotated[
        bool,
        typer.Option(
            "--no-password",
            help="Add a name without a password, which only a proxy can sign in: see --trusted-user-header.",
        ),
    ] = False,
    keep_password: Annotated[
        bool, typer.Option("--keep-password", help="Change only the role and the collections.")
    ] = False,
    sign_out: Annotated[
        bool, typer.Option("--sign-out", help="Sign this name out everywhere, and change nothing else.")
    ] = False,
    remove: Remove = False,
) -> None:
    """Set the password of a person who may sign in to cairn serve --password-file FILE.

    The password is asked for twice, or read as one line from standard input if that is not a terminal. The file stores
    an Argon2 hash of it, and only the owner of the file can read it. A running server applies the change at once:
    people who are signed in with the old password have to sign in again.
    """
    from retrieval.web.access.passwords import NO_PASSWORD, PasswordEntry, check_name, hash_password

    if sum((no_password, keep_password, sign_out, remove)) > 1:
        raise CairnError("Give only one of {--no-password}, {--keep-password}, {--sign-out} and {--remove}.")
    if name is None:
        _list_people(file)
        return
    check_name(name)
    collections = _collections(collection)
    if sign_out:
        _sign_out(file, name)
    elif remove:
        _remove(file, name, token=False)
    elif keep_password:
        _change(file, replace(_known(file, name), role=role, collections=collections), "role")
    else:
        hashed = NO_PASSWORD if no_password else hash_password(_ask())
        _change(
            file,
            PasswordEntry(name, role, hashed, collections),
            "line without a password" if no_password else "password",
        )


def token(
    file: PasswordsFile,
    name: Annotated[
        str | None,
        typer.Argument(
            help="Name of the program, or of the person, that the token is for; without it, all names are listed.",
            show_default=False,
        ),
    ] = None,
    role: RoleOption = Role.READ,
    collection: CollectionsOption = None,
    expires: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Last day (UTC) on which the token is accepted.", show_default=False),
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=0, max=36500, help="The same, as a number of days from today.", show_default=False)
    ] = None,
    remove: Remove = False,
) -> None:
    """Create a token with which a program may use cairn serve --password-file FILE, and print it.

    Programs send it as the header "Authorization: Bearer TOKEN". The file only stores a hash of it, so it cannot be
    printed again. An earlier token of the same name is no longer accepted.
    """
    from retrieval.state.tokens import chosen_day, new_token
    from retrieval.web.access.passwords import PasswordEntry, check_name

    if name is None:
        _list_tokens(file)
        return
    check_name(name)
    last = chosen_day(days, expires)
    if last is not None and last < datetime.now(UTC).date():
        raise CairnError("{--expires} {last} has passed: give a later day.", last=last)
    if remove:
        _remove(file, name, token=True)
        return
    drawn, hashed = new_token()
    _change(file, PasswordEntry(name, role, hashed, _collections(collection), last), "token")
    print(drawn)


def _collections(named: list[str] | None) -> tuple[str, ...]:
    """Names of folders, each once."""
    for one in named or ():
        if one in ("", ".", "..") or {"/", "\\", "\0"} & {*one} or not one.isprintable():
            raise CairnError(
                "{--collection} must be the name of a folder, such as holiday.cairn, not {one}.", one=repr(one)
            )
    return tuple(dict.fromkeys(named or ()))


def _known(file: Path, name: str) -> "PasswordEntry":
    from retrieval.web.access.passwords import read_entries

    for one in read_entries(file):
        if one.name == name and not one.is_token:
            return one
    raise CairnError(f"{file} has no password of {name}.")


def _change(file: Path, entry: "PasswordEntry", what: str) -> None:
    from retrieval.web.access.passwords import change_entry

    before = change_entry(file, entry.name, token=entry.is_token, entry=entry)
    rights = ", ".join([entry.role, *entry.collections, *([f"until {entry.expires}"] if entry.expires else [])])
    print(f"{file}: {entry.name} has {'a new' if before else 'a'} {what} ({rights}).", file=sys.stderr)


def _remove(file: Path, name: str, *, token: bool) -> None:
    from retrieval.web.access.passwords import change_entry

    if not file.exists() or not change_entry(file, name, token=token, entry=None):
        raise CairnError(f"{file} has no {'token' if token else 'password'} of {name}.")
    say(f"{file}: {name} is out.")


def _sign_out(file: Path, name: str) -> None:
    from retrieval.web.access.passwords import Accounts
    from retrieval.web.access.sessions import Sessions, sessions_file

    _known(file, name)
    ended = Sessions(Accounts(file), sessions_file(file)).end_listed(name)
    say(f"{file}: {name} was signed in on {ended} device{'' if ended == 1 else 's'}, and is signed out everywhere.")


def _list_people(file: Path) -> None:
    from retrieval.web.access.passwords import NO_PASSWORD, Accounts
    from retrieval.web.access.sessions import Sessions, sessions_file

    accounts = Accounts(file)
    sessions = Sessions(accounts, sessions_file(file))
    for one in accounts:
        if not one.is_token:
            by = ["without a password"] if one.hash == NO_PASSWORD else []
            print(f"{one.name}: {', '.join([one.role, *by, *one.collections])}")
            for _, session in sessions.listed(one.name):
                device = " on ".join(filter(None, (session.browser, session.system))) or "unknown device"
                where = f"{device}, {printable_name(session.address)}"
                print(f"  signed in {_when(session.begun)}, used {_when(session.used)}: {where}")


def _list_tokens(file: Path) -> None:
    from retrieval.web.access.passwords import Accounts
    from retrieval.web.access.sessions import Sessions, sessions_file

    accounts = Accounts(file)
    sessions = Sessions(accounts, sessions_file(file))
    for one in accounts:
        if one.is_token:
            used = sessions.token_used(one)
            until = f"{'was ' if one.is_over else ''}for use until {one.expires}" if one.expires else "without an end"
            last = "never used" if used is None else f"used {_when(used)}"
            print(f"{one.name}: {', '.join([one.role, *one.collections, until, last])}")


def _when(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def _ask() -> str:
    """Ask for a password, twice; or read it from standard input."""
    from getpass import getpass

    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    first = getpass("Password: ")
    if getpass("Again: ") != first:
        raise CairnError("The two passwords differ: nothing was changed.")
    return first
