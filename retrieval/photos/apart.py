"""Photos are decoded in processes without rights: each sees one open file, and has a bounded time.

A server process, which has loaded the decoders but reads no photo, forks a process for each photo. That process gives
up all rights before it reads the file: it can open nothing, change nothing and reach no other process, and if a hostile
photo takes control of it, that ends with it. It is killed if it uses more processor time than photos of that size need.

On systems other than Linux, photos are decoded in the calling process: see `rights`.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.errors import CairnError
from index.parallel import can_fork, without_interrupt
from index.text import printable_name
from retrieval.metadata.pages import LAST_MOMENT
from retrieval.photos.confinement import can_give_up_all, give_up_rights
from retrieval.photos.decoder import (
    COLOUR,
    GREY,
    MOST_BLANK,
    PAGES,
    Decoded,
    decode,
    is_heic,
    register_heic,
    working_size,
)
from retrieval.photos.options import ImageOptions
from retrieval.photos.pdf import is_pdf, load_pdf
from retrieval.photos.remarks import Remarks
from retrieval.photos.tiff import MOST_DIRECTORIES, MOST_PAGES
from retrieval.photos.work import PhotoTooLarge

LEAST_SECONDS = 20
"""Seconds of the processor that decoding any photo may take."""
PIXELS_A_SECOND = 1_000_000
"""Pixels for which one second more is allowed: the slowest formats take a thirtieth of that."""
PDF_BYTES, PDF_BYTES_A_PIXEL = 1 << 30, 16
"""Memory that a page of a PDF, or a film, may take: what it asks for is not known before it is drawn."""
FILM_SECONDS = 6 * 3600
"""Seconds of the processor that a film may take, however long it is."""
PATIENCE = 20.0
"""How many times as long as of the processor it may take by the clock."""

TOO_LONG = "decoding it takes far longer than a photo of its size does"
"""Reason of a photo that was given up."""

_LONGEST = 4096  # bytes of a message
_START = (
    "import sys; sys.path[:] = sys.argv[2:]; from retrieval.photos.apart import serve_forks; "
    "serve_forks(int(sys.argv[1]))"
)


@dataclass
class _Server:
    """The fork server, as reached from this process and its forks."""

    control: socket.socket
    process: "subprocess.Popen[bytes]"


_lock = threading.Lock()
_server: _Server | None = None
_here = False


class _Lost(Exception):
    """The fork server has ended."""


def rights() -> str:
    """Describe in a sentence what a process that decodes photos can do on this system."""
    if not is_apart():
        return "Photos are decoded with all rights of Cairn itself and in any time: bounding both needs Linux."
    if not is_confined():
        return (
            "Photos are decoded by processes that can open neither files nor connections, but this system cannot keep "
            "them from deleting files (that needs Landlock, of Linux 5.13, on x86-64 or ARM64)."
        )
    return "Photos are decoded by processes that can do nothing else."


def is_confined() -> bool:
    """Whether a process that decodes photos can do nothing else."""
    return is_apart() and can_give_up_all()


def is_apart() -> bool:
    """Whether photos are decoded in separate processes."""
    return not _here and _can_be_apart()


@cache
def _can_be_apart() -> bool:
    return bool(sys.executable) and can_fork()


@contextlib.contextmanager
def decoding_here() -> Iterator[None]:
    """Decode in this process, with all its rights, within a block; for tests."""
    global _here
    before, _here = _here, True
    try:
        yield
    finally:
        _here = before


def decode_apart(
    handle: int, options: ImageOptions, wanted: str, page: int | None = None, every: float | None = None
) -> Decoded:
    """Decode an open file in a process without rights: see `decode` for arguments and results."""
    if not is_apart():
        return decode(handle, options, wanted, page, every=every)
    for _ in range(2):
        with contextlib.suppress(_Lost):
            return _ask(handle, options, wanted, page, every)
    raise CairnError("decoding it was broken off")


def prepare_decoding() -> None:
    """Start the fork server, and wait until it is ready: forks of this process then share it."""
    if is_apart():
        with contextlib.suppress(OSError):  # reported to the process that decodes the first photo
            _started(None).control.recv(1, socket.MSG_PEEK)  # it stays, for the next request


def _started(lost: _Server | None) -> _Server:
    """Return the fork server, a new one if there is none or it is `lost`; raises OSError if it cannot be started."""
    global _server
    with _lock:
        if _server is None or _server is lost:
            if _server is not None:
                _server.control.close()
                _server.process.poll()
            here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            root = str(Path(__file__).parents[2])
            with there, without_interrupt():
                command = [sys.executable, "-I", "-S", "-B", "-c", _START, str(there.fileno()), root, *sys.path]
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[there.fileno()],
                    env=_environment(),
                )
            _server = _Server(here, process)
        return _server


def _environment() -> dict[str, str]:
    """Environment of a process that decodes: paths of libraries, but no secrets of this process."""
    variables = {name: value for name, value in os.environ.items() if name.startswith(("LD_", "LC_", "LANG"))}
    # A process that forks must have no other thread.
    return variables | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def _ask(handle: int, options: ImageOptions, wanted: str, page: int | None, every: float | None) -> Decoded:
    """Let the server fork a process that decodes, and validate its answer."""
    try:
        server = _started(None)
    except OSError as error:
        raise CairnError(f"no process can be started to decode it ({error.strerror})") from error
    here, there = socket.socketpair()
    with here:
        longest = LEAST_SECONDS + options.max_pixels / PIXELS_A_SECOND
        here.settimeout(max(PATIENCE * longest, 2 * FILM_SECONDS if every is not None else 0))
        try:
            with there:
                seconds = LEAST_SECONDS, PIXELS_A_SECOND
                request: dict[str, Any] = {"options": asdict(options), "wanted": wanted, "page": page}
                request |= {"seconds": seconds, "memory": _memory(), "every": every}
                socket.send_fds(server.control, [json.dumps(request).encode()], [handle, there.fileno()])
            size = int.from_bytes(_receive(here, 4), "big")
        except TimeoutError:
            raise CairnError(TOO_LONG) from None
        except (OSError, EOFError) as error:
            _started(server)
            raise _Lost from error
        try:
            answer = json.loads(_receive(here, min(size, _LONGEST)))
            return _checked(answer, here, options, wanted, every is not None)
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise CairnError("decoding it was broken off") from error


def _checked(answer: dict[str, Any], pipe: socket.socket, options: ImageOptions, wanted: str, film: bool) -> Decoded:
    """Validate an answer, without trusting it: a photo may have taken control of the process."""
    if "died" in answer:
        raise CairnError(_DEATHS.get(str(answer["died"]), "its decoder crashed"))
    if "refused" in answer:
        kind = PhotoTooLarge if answer["large"] is True else CairnError
        raise kind(printable_name(str(answer["refused"]))[:300])
    width, height, orientation = (int(answer[name]) for name in ("width", "height", "orientation"))
    remarks = Remarks(
        float(answer["missing"]),
        answer["rough"] is True,
        int(answer["pages"]),
        answer["over_dark"] is True,
        blank=min(max(0, int(answer["blank"])), MOST_BLANK),
    )
    # A JPEG may be an eighth as wide and high once it is decoded.
    if not (width > 0 and height > 0 and width * height <= 64 * options.max_pixels and 1 <= orientation <= 8):
        raise ValueError
    page = int(answer["page"])
    last = LAST_MOMENT if film else MOST_DIRECTORIES
    if not (0 <= remarks.missing <= 1 and 0 <= remarks.pages <= MOST_DIRECTORIES and (not film) <= page <= last):
        raise ValueError
    across, down = working_size((width, height), options)
    pixels: NDArray[Any] = np.empty((0, 0), np.float32)
    if wanted == GREY:
        pixels = np.empty((down, across), np.float32)
    elif wanted == COLOUR:
        pixels = np.empty((down, across, 3), np.uint8)
    elif wanted == PAGES and film:
        pixels = np.empty(min(remarks.pages, MOST_PAGES), np.int64)
    _fill(pipe, pixels.reshape(-1).view(np.uint8).data)
    if pixels.dtype == np.int64 and not np.all(np.diff(pixels, prepend=-1, append=LAST_MOMENT + 1) > 0):
        raise ValueError
    return Decoded(pixels, width, height, orientation, remarks, page)


_DEATHS = {
    "SIGKILL": "decoding it was broken off, most likely for want of memory",
    "SIGXCPU": TOO_LONG,
}


def _memory() -> int:
    """Memory limit of this process in bytes, which also holds for the decoding one; -1: no limit."""
    import resource

    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def _receive(pipe: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    _fill(pipe, memoryview(data))
    return bytes(data)


def _fill(pipe: socket.socket, room: memoryview) -> None:
    while room:
        got = pipe.recv_into(room)
        if not got:
            raise EOFError
        room = room[got:]


# The rest runs in the fork server and its forks.


def serve_forks(handle: int) -> None:
    """Fork a process for each request, until there are no more clients."""
    for number in (signal.SIGINT, signal.SIGTERM):  # clients are stopped, and this process ends with them
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _warm_up()
    control = socket.socket(fileno=handle)
    with contextlib.suppress(OSError):  # there are no more clients, which is detected below
        control.send(b"ready")
    jobs: dict[int, tuple[int, socket.socket]] = {}  # by handle of a fork: its number, and its client
    waiting: dict[int, int] = {}  # handles of forks by those of clients
    events = select.poll()
    events.register(control, select.POLLIN)
    while True:
        # One at a time: numbers of closed handles may be reused.
        [(ready, _), *_] = events.poll()
        if ready == handle:
            message, handles = b"", list[int]()
            with contextlib.suppress(ConnectionResetError):  # no client waits for this to be ready
                message, handles, _, _ = socket.recv_fds(control, _LONGEST, 2)
            if not message:
                os._exit(0)  # the forks end with it
            photo, reply = handles
            pid = _fork(photo, reply, json.loads(message), max(handle, *handles, *jobs, *waiting))
            os.close(photo)
            pipe = socket.socket(fileno=reply)
            if not pid:
                pipe.close()
                continue
            fork = os.pidfd_open(pid)
            jobs[fork], waiting[reply] = (pid, pipe), fork
            events.register(fork, select.POLLIN)
            events.register(reply, 0)  # notices if the client no longer waits
        elif ready in waiting:
            signal.pidfd_send_signal(waiting[ready], signal.SIGKILL)
            events.unregister(ready)
            del waiting[ready]
        else:
            pid, pipe = jobs.pop(ready)
            _, status = os.waitpid(pid, 0)
            events.unregister(ready)
            os.close(ready)
            if waiting.pop(pipe.fileno(), None) is not None:
                events.unregister(pipe)
            if os.WIFSIGNALED(status):
                with contextlib.suppress(OSError):
                    _say(pipe, {"died": signal.Signals(os.WTERMSIG(status)).name})
            pipe.close()


def _warm_up() -> None:
    """Load everything that decoding a photo needs, so that forks need not."""
    import resource  # noqa: F401

    can_give_up_all()
    sample = os.memfd_create("sample")
    with open(sample, "wb") as file:  # noqa: PTH123 (it has no path)
        Image.new("RGB", (32, 32)).save(file, "JPEG")
        file.flush()
        for wanted in (GREY, COLOUR):
            decode(sample, ImageOptions(max_side=8), wanted)
    gc.freeze()  # garbage collection in a fork would write to shared memory


def _fork(photo: int, reply: int, request: dict[str, Any], highest: int) -> int:
    """Fork a process that decodes a photo; return its number, 0 if that fails, which is reported to its client.

    Of the open handles, up to `highest`, the fork keeps only those of the photo and its client.
    """
    head = os.pread(photo, 64, 0)
    with contextlib.suppress(CairnError):  # the fork reports it
        if is_heic(head):
            register_heic()
        if is_pdf(head):
            load_pdf()
        if request["every"] is not None:
            import retrieval.photos.films  # noqa: F401
    try:
        pid = os.fork()
    except OSError as error:
        with contextlib.suppress(OSError), socket.fromfd(reply, socket.AF_UNIX, socket.SOCK_STREAM) as pipe:
            _say(pipe, {"refused": f"no process can be started to decode it ({error.strerror})", "large": False})
        return 0
    if not pid:
        try:
            os.dup2(photo, 0)
            os.dup2(reply, 1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.closerange(3, highest + 2)  # the null device may have a higher number
            _decode_alone(socket.socket(fileno=1), request)
        finally:
            os._exit(0)
    return pid


def _decode_alone(pipe: socket.socket, request: dict[str, Any]) -> None:
    """Give up all rights, decode, and send the result."""
    import resource

    options = ImageOptions(**request["options"])
    least, pixels_a_second = request["seconds"]

    def opened(pixels: int) -> None:
        _limit(resource.RLIMIT_CPU, least + pixels // pixels_a_second)

    try:
        memory = [request["memory"]] if request["memory"] >= 0 else []
        is_film = request["every"] is not None
        if is_film or is_pdf(os.pread(0, 64, 0)):
            memory.append(PDF_BYTES + PDF_BYTES_A_PIXEL * options.max_pixels)
        if memory:
            _limit(resource.RLIMIT_DATA, min(memory))
        # Two seconds more: a process at the last limit is killed, as one without memory is.
        longest = least + options.max_pixels // pixels_a_second
        _limit(resource.RLIMIT_CPU, least, (FILM_SECONDS if is_film else longest) + 2)
        give_up_rights()
        decoded = decode(0, options, request["wanted"], request["page"], opened, request["every"])
    except CairnError as error:
        _say(pipe, {"refused": str(error), "large": isinstance(error, PhotoTooLarge)})
        return
    except OSError as error:
        _say(pipe, {"refused": f"no process without rights can be had to decode it ({error.strerror})", "large": False})
        return
    size = {"width": decoded.width, "height": decoded.height, "orientation": decoded.orientation, "page": decoded.page}
    _say(pipe, size | asdict(decoded.remarks))
    pipe.sendall(decoded.pixels.reshape(-1).view(np.uint8).data)


def _limit(what: int, most: int, ever: int | None = None) -> None:
    """Set a soft and a hard limit of resources, neither above its current value."""
    import resource

    _, hard = resource.getrlimit(what)
    if ever is not None:
        hard = ever if hard < 0 else min(ever, hard)
    resource.setrlimit(what, (most if hard < 0 else min(most, hard), hard))


def _say(pipe: socket.socket, answer: dict[str, Any]) -> None:
    text = json.dumps(answer).encode()
    pipe.sendall(len(text).to_bytes(4, "big") + text)
