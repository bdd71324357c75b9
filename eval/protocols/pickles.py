"""Safe reading of pickled data: opcodes are interpreted, and nothing that they name is called. Containers, text, bytes,
numbers and plain NumPy arrays are supported, and everything else is refused. A whitelisting `pickle.Unpickler` would
not be safe: it uses registered extension codes without asking, and allocates a memo as large as the pickle states.
"""

import pickletools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from index.errors import CairnError, refuse_unreadable
from index.files.reading import open_regular
from index.text import shown

LARGEST = 1 << 24
"""Most bytes of a file: the published ground truths have less than a twentieth."""
DEEPEST = 32
"""Deepest nesting of containers."""

_KINDS = "biufSU"  # of array elements: no Python objects, no records, no dates
_MOST_AXES = 8

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    )
)
_TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_ARRAYS = ("numpy.core.multiarray", "numpy._core.multiarray")
_BUFFERS = ("numpy.core.numeric", "numpy._core.numeric")


class _Wrong(Exception):
    """The pickle is damaged, or holds more than plain data."""


class _Named:
    """One of the few names used in pickled arrays."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Type:
    """The element type of an array; its byte order is set later."""

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "|"

    def dtype(self) -> np.dtype[Any]:
        if self.code[:1] not in tuple(_KINDS) or not self.code[1:].isdigit() or len(self.code) > 8:
            raise _Wrong(f"it holds an array of {shown(self.code)}")
        order = self.order if self.order in ("<", ">", "=") else "="
        dtype = np.dtype(order + self.code)
        if dtype.hasobject or dtype.itemsize < 1:
            raise _Wrong(f"it holds an array of {shown(self.code)}")
        return dtype


class _Array:
    """An array whose contents are set after its creation."""

    def __init__(self, value: np.ndarray[Any, Any] | None = None) -> None:
        self.value = value


_NAMES: dict[tuple[str, str], str] = {
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("_codecs", "encode"): "encode",
    **{(module, "bytes"): "bytes" for module in ("builtins", "__builtin__")},
    **{(module, "_reconstruct"): "array" for module in _ARRAYS},
    **{(module, "scalar"): "scalar" for module in _ARRAYS},
    **{(module, "_frombuffer"): "buffer" for module in _BUFFERS},
}


def read_pickle(path: Path) -> Any:
    """Read a pickle that holds plain data alone, of any protocol; text of Python 2 as Latin-1. Raises CairnError if it
    is damaged, larger than `LARGEST`, deeper than `DEEPEST` or cyclic, or has names other than those of arrays.
    """
    try:
        with open_regular(path) as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        refuse_unreadable(path, error)
        raise CairnError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from None
    if len(content) > LARGEST:
        raise CairnError(f"{str(path)!r} is larger than {LARGEST >> 20} MB: it is not a ground truth.")
    try:
        return _Finisher().finish(_Machine().run(content), 0)
    except _Wrong as error:
        raise CairnError(f"{str(path)!r} is not read: {error}.") from None
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, struct.error):
        raise CairnError(f"{str(path)!r} is not a pickle, or is damaged: download it again.") from None


class _Machine:
    """Interprets the opcodes with its own stack."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._marks: list[int] = []  # heights of the stack
        self._memo: dict[int, Any] = {}
        self._actions: dict[str, Callable[[Any], None]] = {
            "MARK": lambda _: self._marks.append(len(self._stack)),
            "TUPLE": lambda _: self._push(tuple(self._since_mark())),
            "LIST": lambda _: self._push(self._since_mark()),
            "DICT": lambda _: self._push(_pairs(self._since_mark())),
            "EMPTY_LIST": lambda _: self._push([]),
            "EMPTY_DICT": lambda _: self._push({}),
            "APPEND": lambda _: self._extend([self._stack.pop()]),
            "APPENDS": lambda _: self._extend(self._since_mark()),
            "SETITEM": lambda _: self._update(self._take(2)),
            "SETITEMS": lambda _: self._update(self._since_mark()),
            "GLOBAL": lambda name: self._name(*name.split(" ", 1)),
            "STACK_GLOBAL": lambda _: self._name(*self._take(2)),
            "REDUCE": lambda _: self._push(_made(*self._take(2))),
            "BUILD": lambda _: self._build(),
            "MEMOIZE": lambda _: self._remember(len(self._memo)),
            **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), self._remember),
            **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda number: self._push(self._memo[number])),
            **dict.fromkeys(("PROTO", "FRAME", "STOP"), lambda _: None),
        }

    def run(self, content: bytes) -> Any:
        """Return the contents of a pickle, with arrays as `_Array`."""
        for opcode, argument, _ in pickletools.genops(content):
            name = opcode.name
            if name in _VALUES:
                self._push(argument)
            elif name in _CONSTANTS:
                self._push(_CONSTANTS[name])
            elif name in _TUPLES:
                self._push(tuple(self._take(_TUPLES[name])))
            elif name in self._actions:
                self._actions[name](argument)
            else:
                raise _Wrong(f"it holds what is no plain data ({name})")
        if len(self._stack) != 1 or self._marks:
            raise ValueError("the stack is not empty in the end")
        return self._stack[0]

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _take(self, count: int) -> list[Any]:
        if len(self._stack) - count < (self._marks[-1] if self._marks else 0):
            raise IndexError("the stack is empty")
        start = len(self._stack) - count
        items = self._stack[start:]
        del self._stack[start:]
        return items

    def _since_mark(self) -> list[Any]:
        return self._take(len(self._stack) - self._marks.pop())

    def _extend(self, values: list[Any]) -> None:
        if not isinstance(self._stack[-1], list):
            raise TypeError("no list to append to")
        self._stack[-1].extend(values)

    def _update(self, values: list[Any]) -> None:
        if not isinstance(self._stack[-1], dict):
            raise TypeError("no dict to add to")
        self._stack[-1].update(_pairs(values))

    def _remember(self, number: int) -> None:
        self._memo[number] = self._stack[-1]

    def _name(self, module: Any, name: Any) -> None:
        if (module, name) not in _NAMES:
            raise _Wrong(f"it names {shown(f'{module}.{name}')}, and only plain data and NumPy arrays are read")
        self._push(_Named(_NAMES[module, name]))

    def _build(self) -> None:
        (state,) = self._take(1)
        target = self._stack[-1]
        if isinstance(target, _Type):
            target.order = str(state[1])
            if any(one is not None for one in state[2:5]):
                raise _Wrong("it holds an array of records")
        elif isinstance(target, _Array) and target.value is None:
            _, shape, kind, by_columns, raw = state
            target.value = _filled(raw, kind, shape, "F" if by_columns else "C")
        else:
            raise _Wrong("it holds what is no plain data (BUILD)")


def _pairs(values: list[Any]) -> dict[Any, Any]:
    keys = values[::2]
    if not all(isinstance(key, str | bytes | int | float | bool | None) for key in keys):
        raise _Wrong("a key of a dict in it is not text or a number")
    return dict(zip(keys, values[1::2], strict=True))


def _made(what: Any, arguments: Any) -> Any:
    """Evaluate a REDUCE of one of the known names."""
    name = what.name if isinstance(what, _Named) else None
    if name == "dtype" and isinstance(arguments[0], str):
        return _Type(arguments[0])
    if name == "array":
        return _Array()  # the shape here does not matter: BUILD sets it
    if name == "scalar":
        kind, raw = arguments
        return _Array(_filled(raw, kind, (), "C"))
    if name == "buffer":
        raw, kind, shape, order = arguments
        return _Array(_filled(raw, kind, shape, order))
    if name == "bytes" and arguments == ():
        return b""
    if name == "encode" and arguments[1] in ("latin1", "latin-1"):
        return _bytes(arguments[0])  # bytes of Python 3 in protocol 2
    raise _Wrong("it holds what is no plain data (REDUCE)")


def _filled(raw: Any, kind: Any, shape: Any, order: Any) -> np.ndarray[Any, Any]:
    """Make an array of its bytes, whose number must follow from its shape."""
    if not isinstance(kind, _Type):
        _refuse_array()
    dtype = kind.dtype()
    sizes = tuple(shape)
    if len(sizes) > _MOST_AXES or not all(type(size) is int and size >= 0 for size in sizes) or order not in ("C", "F"):
        _refuse_array()
    raw = _bytes(raw)
    expected = dtype.itemsize
    for size in sizes:
        expected *= size
    if expected != len(raw):
        _refuse_array()
    return np.frombuffer(raw, dtype).reshape(sizes, order=order).copy()


def _bytes(raw: Any) -> bytes:
    """Bytes, or text of Python 2 with one character per byte."""
    return raw.encode("latin-1") if isinstance(raw, str) else bytes(raw) if isinstance(raw, bytearray) else _is(raw)


def _is(raw: Any) -> bytes:
    if not isinstance(raw, bytes):
        _refuse_array()
    return raw


def _refuse_array() -> NoReturn:
    raise _Wrong("an array in it is damaged")


class _Finisher:
    """Replaces placeholders by arrays; shared ones are converted once."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}
        self._under_way: set[int] = set()

    def finish(self, value: Any, depth: int) -> Any:
        if isinstance(value, _Array):
            if value.value is None:
                _refuse_array()
            return value.value if value.value.ndim else value.value[()]
        if isinstance(value, _Named | _Type):
            raise _Wrong("it holds what is no plain data")
        if not isinstance(value, dict | list | tuple):
            return value
        if id(value) in self._done:
            return self._done[id(value)]
        if id(value) in self._under_way:
            raise _Wrong("a container in it lies within itself")
        if depth >= DEEPEST:
            raise _Wrong(f"its containers are more than {DEEPEST} deep")
        self._under_way.add(id(value))
        if isinstance(value, dict):
            finished: Any = {key: self.finish(one, depth + 1) for key, one in value.items()}
        else:
            finished = type(value)(self.finish(one, depth + 1) for one in value)
        self._under_way.discard(id(value))
        self._done[id(value)] = finished
        return finished
