"""Network options of `cairn serve`, and the object that is made from them."""

import enum
import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from index.attributes import some_of
from index.errors import CairnError

PANEL = "On a network"


class LogLevel(enum.StrEnum):
    """Levels of the log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class AccessLog(enum.StrEnum):
    """Format in which each request is logged."""

    NONE = "none"
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class AccessOptions:
    """Which clients are answered, and how."""

    password_file: Path | None = None  # None: this machine alone is answered, and may do all
    own_user: bool = False  # of this machine, without a password, the server's own user alone is answered
    token: str = ""  # lets this user in where the kernel does not say whose connection it is
    hosts: frozenset[str] | None = None  # names that the server goes by; None: any
    root_path: str = ""  # such as "/photos"; "" where the server has a host of its own
    forwarded_from: tuple[str, ...] = ()  # addresses and networks of proxies that are believed
    user_header: str = ""  # header with which those report the user name
    audit_log: Path | None = None  # file with a line for each change
    cors: tuple[str, ...] = ()  # origins whose pages may use the API
    open_manifests: bool = False  # whether all may read manifests, and sign in from viewers
    searches: int = 240  # searches and uploads of one client in a minute; 0: any number
    logins: int = 10  # wrong passwords of one address in five minutes
    logins_of_name: int = 30  # wrong passwords for one name in five minutes
    session_seconds: int = 14 * 86400  # after which one has to sign in again
    access_log: AccessLog = AccessLog.NONE
    body_bytes: int = 16_000_000  # of a request that is no form with uploads
    body_seconds: float = 60.0  # that a request may take to arrive, and more for what has arrived:
    body_rate: float = 10_000.0  # bytes a second, at least

    def __post_init__(self) -> None:
        for one in self.forwarded_from:
            try:
                ipaddress.ip_network(one, strict=False)
            except ValueError:
                raise CairnError(
                    "{--forwarded-from} must be an address or a network such as 10.0.0.0/8, not {one}.", one=repr(one)
                ) from None
        if self.open_manifests and not self.password_file:
            raise CairnError("{--open-manifests} needs {--password-file}: without it, only you can read manifests.")
        if self.user_header and not (self.forwarded_from and self.password_file):
            raise CairnError(
                "{--trusted-user-header} needs {--forwarded-from}, which names the trusted proxies, and "
                "{--password-file} with the names that they may send."
            )
        if self.user_header and not re.fullmatch(r"[A-Za-z0-9-]+", self.user_header):
            raise CairnError(
                "{--trusted-user-header} must be a name such as X-Remote-User, not {user_header}.",
                user_header=repr(self.user_header),
            )
        for one in self.cors:
            if not re.fullmatch(r"https?://[A-Za-z0-9.\-\[\]:]+", one):
                raise CairnError(
                    "{--cors} must be an origin such as https://www.example.org, not {one}.", one=repr(one)
                )
        if self.root_path and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", self.root_path):
            raise CairnError(
                "{--root-path} must be a path such as /photos, not {root_path}.", root_path=repr(self.root_path)
            )

    def is_proxy(self, address: str) -> bool:
        """Whether an address is one of `forwarded_from`."""
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        ip = getattr(ip, "ipv4_mapped", None) or ip
        return any(ip in ipaddress.ip_network(one, strict=False) for one in self.forwarded_from)

    @property
    def expects_others(self) -> bool:
        """Whether an option lets in others than the server's own user, for instance through a proxy."""
        said = self.password_file or self.forwarded_from or self.cors or self.root_path or not self.own_user
        return bool(said) or not all(is_loopback(name) for name in self.hosts or ())


def _access_option(
    meaning: str, metavar: str | None = None, *flags: str, show_default: bool = False, **more: Any
) -> Any:
    return typer.Option(*flags, metavar=metavar, help=meaning, rich_help_panel=PANEL, show_default=show_default, **more)


@dataclass(frozen=True)
class NetworkOptions:
    """Network options as given on the command line."""

    password_file: Annotated[
        Path | None,
        _access_option(
            "File of the people and programs that may use the server, as written by cairn password and cairn token; "
            "without it, only you may, on this machine.",
            "FILE",
        ),
    ] = None
    allowed_host: Annotated[
        list[str] | None,
        _access_option(
            "Host name of the server, such as photos.example.org; requests to other names are refused. May be "
            "repeated.",
            "NAME",
        ),
    ] = None
    root_path: Annotated[
        str, _access_option("Path under which a proxy serves the application, such as /photos.", "PATH")
    ] = ""
    forwarded_from: Annotated[
        list[str] | None,
        _access_option(
            "Address of a proxy, or of a network of proxies, whose headers X-Forwarded-For and X-Forwarded-Proto are "
            "trusted. May be repeated.",
            "ADDRESS",
        ),
    ] = None
    trusted_user_header: Annotated[
        str,
        _access_option(
            "Header, such as X-Remote-User, in which the proxies of --forwarded-from say who has signed in; the name "
            "must be in the password file.",
            "NAME",
        ),
    ] = ""
    cors: Annotated[
        list[str] | None,
        _access_option(
            "Web site (origin), such as https://www.example.org, whose pages may use the API, with a token. May be "
            "repeated.",
            "ORIGIN",
        ),
    ] = None
    open_manifests: Annotated[
        bool,
        _access_option(
            "Show IIIF manifests and info.json, with all that they say about photos, to everyone, so that viewers on "
            "the sites of --cors can let people sign in (IIIF Authorization Flow). The pictures themselves are only "
            "shown to people who have signed in.",
            None,
            "--open-manifests",
            show_default=True,
        ),
    ] = False
    search_limit: Annotated[
        int,
        _access_option(
            "Most searches and uploads per minute from one person or address; 0: no limit.",
            "N",
            min=0,
            show_default=True,
        ),
    ] = AccessOptions.searches
    log_level: Annotated[
        LogLevel, _access_option("Least severe messages that are logged, on standard error.", show_default=True)
    ] = LogLevel.WARNING
    access_log: Annotated[AccessLog, _access_option("Format in which each request is logged.", show_default=True)] = (
        AccessLog.NONE
    )
    audit_log: Annotated[
        Path | None,
        _access_option(
            "File to which a line of JSON is added for each change, sign-in and sign-out: who, what, when and from "
            "where.",
            "FILE",
        ),
    ] = None
    every_user: Annotated[
        bool,
        _access_option(
            "Without a password file, answer all users of this machine, not only the one who started the server.",
            None,
            "--every-user",
            show_default=True,
        ),
    ] = False

    def access_options(self, host: str) -> AccessOptions:
        """Choose the clients that are answered by a server that listens at an address."""
        hosts: frozenset[str] | None = None
        # Without a password this machine is answered, so that no web site whose name is made to lead here may ask.
        if self.allowed_host or is_loopback(host) or self.password_file is None:
            hosts = LOOPBACK | {host.lower()} | {one.lower() for one in self.allowed_host or ()}
        return AccessOptions(
            own_user=not self.every_user,
            hosts=hosts,
            root_path=self.root_path.rstrip("/"),
            forwarded_from=tuple(self.forwarded_from or ()),
            user_header=self.trusted_user_header,
            cors=tuple(one.rstrip("/") for one in self.cors or ()),
            searches=self.search_limit,
            **some_of(self, "password_file", "audit_log", "open_manifests", "access_log"),
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine itself reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
"""Names of this machine for itself."""
