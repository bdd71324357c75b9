"""Numbers as a caller may give them."""

import operator
from typing import Any

from index.errors import CairnError


def whole(name: str, value: Any, least: int | None = None) -> int:
    """Take a whole number of any type, such as one of NumPy.

    Parameters
    ----------
    name : str
        What the argument is called.
    value : int
        The number.
    least : int, optional
        Smallest that it may be.

    Raises
    ------
    CairnError
        It is none, or smaller.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise CairnError(f"{name} is a whole number, and not {value!r}.") from None
    if least is not None and number < least:
        raise CairnError(f"{name} is {least} at least, and not {number}.")
    return number
