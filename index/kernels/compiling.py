"""Functions compiled to machine code by Numba.

A module of compiled functions imports this one, and is itself imported where its functions are called: Numba takes half
a second to load, which commands that do not search can spare. What was compiled is kept on disk, beside the module or
in the user's cache folder, so that a function is compiled once for each installation and kind of processor.

Numba notices that a function has changed by its file alone: a compiled function calls only those of its own module.
Array accesses are not checked: what comes from a file must be, before it is used as an index.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import types

from index.cluster.storage import CACHE_VARIABLE

_settings: Any = numba.config
if os.environ.get(CACHE_VARIABLE) and not _settings.CACHE_DIR:
    _settings.CACHE_DIR = str(Path(os.environ[CACHE_VARIABLE]) / "compiled")

F = TypeVar("F", bound=Callable[..., Any])

UINT8, UINT64, INT32, INT64 = types.uint8, types.uint64, types.int32, types.int64
FLOAT32, FLOAT64, BOOL = types.float32, types.float64, types.boolean


def array(kind: Any, dimensions: int = 1) -> Any:
    """The type of a parameter that takes arrays in C order, those that cannot be written among them."""
    return types.Array(kind, dimensions, "C", readonly=True)


def written(kind: Any, dimensions: int = 1) -> Any:
    """The type of a parameter that takes arrays in C order and is written to."""
    return types.Array(kind, dimensions, "C")


def compiled(*parameters: Any, any_order: bool = False) -> Callable[[F], F]:
    """Compile a function for parameters of these types, when its module is imported.

    Arguments of other types are refused by TypeError, so that nothing is ever compiled while somebody waits for an
    answer. Without any parameters the function is compiled into those of its module that call it.

    Division by zero gives infinity or NaN, as in NumPy. The interpreter is free for other threads meanwhile.

    With `any_order`, floats are added up in any order, and a product and a sum rounded once, so that many are done at
    once: as in linear algebra, another kind of processor may then round otherwise.
    """
    jit: Any = numba.njit

    def compile_function(function: F) -> F:
        fast = {"reassoc", "contract", "nsz"} if any_order else False
        options = {"nogil": True, "error_model": "numpy", "fastmath": fast}
        signature = [tuple(parameters)] if parameters else None
        try:
            made: F = jit(signature, cache=True, **options)(function)
        except RuntimeError:  # there is no folder that may be written to: it is compiled in every process
            made = jit(signature, **options)(function)
        return made

    return compile_function
