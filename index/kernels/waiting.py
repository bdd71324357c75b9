"""Who is told that functions are compiled, while somebody waits for it."""

from collections.abc import Callable

_listener: Callable[[], None] | None = None


def tell_of_compiling(listener: Callable[[], None] | None) -> None:
    """Have a function called when this process next compiles one; loading what has been kept is not worth telling."""
    global _listener
    _listener = listener


def compiling_begins() -> None:
    """Tell whoever waits, once."""
    global _listener
    listener, _listener = _listener, None
    if listener is not None:
        listener()
