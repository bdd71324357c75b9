"""Running a server: common code of `cairn serve` and `cairn open`."""

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from index.errors import CairnError
from retrieval.commands.console import say
from retrieval.web.access.options import AccessOptions, LogLevel, NetworkOptions, is_loopback

if TYPE_CHECKING:
    import socket

    from retrieval.web.service import ServeOptions

OPENING = 600.0
"""Seconds after which a collection that has not been opened is given up: a large one may be on a slow drive."""

STOPPING = "cairn.stopping"
"""Key in a request's scope: a function that says whether the server is about to end."""

PHOTOS = "Photos"
"""Panel of the options about photos' files."""

Host = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS", help="Address to listen on; other machines are only answered with --password-file."
    ),
]
Workers = Annotated[
    int, typer.Option(help="Number of processes that search a collection; as many others decode photos.", min=1)
]


def _file_option(*flags: str, **more: Any) -> Any:
    return typer.Option(*flags, rich_help_panel=PHOTOS, show_default=False, **more)


@dataclass(frozen=True)
class FileOptions:
    """Handling of photos' files, as options of the command line."""

    originals: Annotated[
        bool | None,
        _file_option(
            "--originals/--no-originals",
            help="Let visitors download the original files of photos, with all that cameras wrote into them (default: "
            "only if the server is for you alone, so not with --password-file, --forwarded-from, --allowed-host or "
            "--every-user).",
        ),
    ] = None
    photos: Annotated[
        list[Path] | None,
        _file_option(
            help="Folder from which photos may be chosen in the browser, with all its subfolders; may be repeated "
            "(default: your home folder, and none with --password-file, --forwarded-from, --allowed-host or "
            "--every-user, which let others in).",
        ),
    ] = None
    bin: Annotated[
        Path | None,
        _file_option(
            metavar="FOLDER",
            help="Let visitors move duplicates to this folder, from which they can be put back (default: no file is "
            "moved).",
        ),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        _file_option(
            metavar="HOST",
            help="Let jobs fetch IIIF pages from this host although its address is not on the public Internet; may be "
            "repeated.",
        ),
    ] = None


@dataclass(frozen=True)
class RunOptions:
    """How a server runs."""

    host: str  # address to listen at
    port: int  # 0: any that is free
    workers: int  # processes that search a collection, and the same number that decode photos
    files: FileOptions
    access: AccessOptions  # clients that are answered
    log_level: LogLevel  # what is logged

    @classmethod
    def of_command(
        cls, host: str, port: int, workers: int, files: FileOptions, network: NetworkOptions
    ) -> "RunOptions":
        """Make the options from those of a command; raises CairnError if one of these is wrong."""
        return cls(host, port, workers, files, network.access_options(host), network.log_level)

    @property
    def is_local(self) -> bool:
        """Whether the server is only for its own user: it listens only to this machine, and no option lets others in.
        Clients of a proxy on this machine come from this machine too, so the address does not prove it.
        """
        return is_loopback(self.host) and not self.access.expects_others

    def roots(self) -> tuple[Path, ...]:
        """Folders below which photos may be chosen in the browser; raises CairnError if one is not a folder."""
        folders = tuple(self.files.photos or ())
        for folder in folders:
            if not folder.is_dir():
                raise CairnError(
                    "There is no folder {folder}, named with {--photos}; check the name.", folder=repr(str(folder))
                )
        return folders or ((Path.home(),) if self.is_local else ())

    def serve_options(self) -> "ServeOptions":
        """Return the options with which a collection is served."""
        from retrieval.web.service import ServeOptions

        files = self.files
        options = ServeOptions(access=self.access, roots=self.roots(), iiif_hosts=tuple(files.allow_host or ()))
        return replace(
            options,
            bin=files.bin.absolute() if files.bin else None,
            search=replace(options.search, workers=self.workers),
            pictures=replace(options.pictures, workers=self.workers),
            exports=replace(options.exports, files=self.is_local if files.originals is None else files.originals),
        )


def run(app: object, listening: "socket.socket", options: RunOptions, begun: Callable[[str], object]) -> None:
    """Run an application at a socket of `listen` until it is stopped; `begun` is called with its address."""
    import signal

    import uvicorn

    from retrieval.photos.apart import is_confined, rights
    from retrieval.web.access.connections import most_connections, patient_protocol
    from retrieval.web.access.watch import set_up_logs

    where = address_of(listening, options.host)
    if not is_loopback(options.host) and options.access.password_file is None:
        print(
            f"cairn: there is no password, so this machine alone is answered, though others reach {options.host}: "
            "let people in with --password-file.",
            file=sys.stderr,
        )
    if not is_confined():
        print(f"cairn: {rights()}", file=sys.stderr)
    set_up_logs(options.log_level, options.access.access_log)
    say(f"Serving at {with_token(where, options.access.token)} (end with Ctrl-C)")
    sys.stdout.flush()
    begun(where)

    async def stoppable(scope: Any, receive: Any, send: Any) -> None:
        """Let long answers know when the server is about to end."""
        scope[STOPPING] = lambda: server.should_exit
        await app(scope, receive, send)  # type: ignore[operator]

    config = uvicorn.Config(
        stoppable,
        http=patient_protocol(most_connections(), users=options.access.own_user),
        log_config=None,  # it is set up above
        access_log=False,
        server_header=False,
        proxy_headers=False,  # they are trusted only from --forwarded-from
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    # The server ends cleanly and passes the signal on, so that SIGTERM is seen as the cause of its end.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def with_token(address: str, token: str) -> str:
    """Return an address with the token, if there is one."""
    from retrieval.web.access.own_user import PARAMETER

    return f"{address}?{PARAMETER}={token}" if token else address


def show(address: str) -> None:
    """Open an address in the web browser, if there is a screen."""
    import os
    import webbrowser

    if sys.platform == "linux" and not {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & {*os.environ}:
        return  # a browser in the terminal would take that over
    webbrowser.open(address)


def address_of(listening: "socket.socket", host: str) -> str:
    """Return the address of a server for this machine, such as ``http://127.0.0.1:8000/``."""
    port = listening.getsockname()[1]
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def listen(host: str, port: int, *, fallback: bool = False) -> "socket.socket":
    """Listen on an address, or with `fallback` on another port if it is in use; raises CairnError if that fails."""
    import errno
    import socket

    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise CairnError(
            "There is no address {host} here ({error}): give another with {--host}.", host=repr(host), error=error
        ) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE and fallback:
            return listen(host, 0)
        if error.errno == errno.EADDRINUSE:
            raise CairnError("Port {port} is taken: choose another with {--port}, or 0 for any.", port=port) from None
        raise CairnError(f"{host} port {port} cannot be used ({error.strerror}): give another.") from None
    return listening
