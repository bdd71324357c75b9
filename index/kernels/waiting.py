"""Notification that functions are being compiled."""

from collections.abc import Callable

_listener: Callable[[], None] | None = None


def tell_of_compiling(listener: Callable[[], None] | None) -> None:
    """Call a listener when this process next compiles a function; loading cached code is not reported."""
    global _listener
    _listener = listener


def compiling_begins() -> None:
    """Notify the listener once."""
    global _listener
    listener, _listener = _listener, None
    if listener is not None:
        listener()
