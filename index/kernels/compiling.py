"""Functions compiled to machine code by Numba.

A module of compiled functions imports this one, and is itself imported where its functions are called: Numba takes half
a second to load, which commands that do not search can spare. Machine code is cached on disk, so that a function is
compiled once for each installation and kind of processor: in the folder that the variable CAIRN_CACHE names, else
next to the module, else in the user's cache folder.

Numba detects changes of a function by its file only, so a compiled function calls only functions of its own module and
of this one. After a change of this module, delete the cache (``__pycache__/*.nb?``).

Array accesses are not checked: check values from files before using them as an index.
"""

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.options import DefaultOptions
from numba.extending import intrinsic

from index.kernels.keeping import CompiledCache, cache_settings
from index.kernels.waiting import compiling_begins

_COUNTS = "_nrt"  # Numba's name for reference counting of arrays; undocumented, may disappear
_NOT_FROM_C = "no_cfunc_wrapper"  # undocumented too: do without a wrapper for C code, a tenth of the time of compiling

F = TypeVar("F", bound=Callable[..., Any])

UINT8, UINT64, INT32, INT64 = types.uint8, types.uint64, types.int32, types.int64
UINT16, UINT32 = types.uint16, types.uint32
FLOAT32, FLOAT64, BOOL = types.float32, types.float64, types.boolean


def array(kind: Any, dimensions: int = 1) -> Any:
    """The type of a parameter that takes arrays in C order, including read-only ones."""
    return types.Array(kind, dimensions, "C", readonly=True)


def written(kind: Any, dimensions: int = 1) -> Any:
    """The type of a parameter that takes arrays in C order and is written to."""
    return types.Array(kind, dimensions, "C")


def together(*kinds: Any) -> Any:
    """The type of a parameter that takes a tuple."""
    tuple_of: Any = types.Tuple  # it has no annotations
    return tuple_of(kinds)


def compiled(*parameters: Any, makes_arrays: bool = True) -> Callable[[F], F]:
    """Compile a function for parameters of these types, when its module is imported.

    Arguments of other types raise TypeError, so that nothing is compiled during a request. Without parameters the
    function is compiled together with its callers in the module.

    Division by zero gives infinity or NaN, as in NumPy. The interpreter lock is released meanwhile.

    Floats are added in the written order, and products are rounded before they are added, so that all processors give
    the same bits. Sums meant for vector instructions are written side by side.

    Without `makes_arrays`, references to arrays are not counted, which would take two locked additions for each inner
    call and each reassignment of an array in a loop. Such a function neither makes nor returns an array.
    """
    jit: Any = numba.njit

    def compile_function(function: F) -> F:
        options = {"nogil": True, "error_model": "numpy"}
        if not makes_arrays and hasattr(DefaultOptions, _COUNTS):
            options[_COUNTS] = False
        if hasattr(DefaultOptions, _NOT_FROM_C):
            options[_NOT_FROM_C] = True
        if not parameters:
            part: F = jit(**options)(function)  # cached with its callers
            return part
        with cache_settings():
            for _ in range(2):
                cached: Any = None
                # Nothing can be cached (no folder, or a full disk), or the cache is damaged.
                with contextlib.suppress(Exception):
                    cached = jit(**options)(function)
                    cached._cache = CompiledCache(function)
                    cached.compile(tuple(parameters))
                    cached.disable_compile()
                    return cast(F, cached)
                with contextlib.suppress(Exception):
                    cached._cache.flush()
        compiling_begins()
        alone: F = jit([tuple(parameters)], **options)(function)
        return alone

    return compile_function


@compiled()
def count_ones(bits: Any) -> Any:
    """Number of set bits of a 64-bit number: compiles to one instruction of the processor."""
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (bits * np.uint64(0x0101010101010101)) >> np.uint64(56)


@compiled()
def lowest_one(bits: Any) -> Any:
    """Position of the lowest set bit of a 64-bit number; 64 if it is 0."""
    return np.int64(count_ones((bits & (~bits + np.uint64(1))) - np.uint64(1)))


def call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Generate a call of an LLVM intrinsic."""
    known = builder.module.globals.get(name)
    kind = ir.FunctionType(result, [one.type for one in arguments])
    return builder.call(known or ir.Function(builder.module, kind, name), arguments)


def spread(builder: Any, one: Any, vector: Any) -> Any:
    """Generate a vector of this type with the same number in every element."""
    nothing, places = ir.Constant(vector, ir.Undefined), ir.VectorType(ir.IntType(32), vector.count)
    first = builder.insert_element(nothing, one, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(places, [0] * vector.count))


def _generate_ask_for(typing: Any, values: Any, place: Any) -> Any:
    """Code of `ask_for`: prefetch the cache line of an element of an array, if the element exists."""
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = context.make_array(signature.args[0])(context, builder, arguments[0])
        number, byte = ir.IntType(32), ir.IntType(8)
        where = builder.bitcast(builder.gep(of.data, [arguments[1]]), byte.as_pointer())
        to_read, stays, is_data = (ir.Constant(number, one) for one in (0, 3, 1))
        call(builder, "llvm.prefetch.p0", ir.VoidType(), where, to_read, stays, is_data)
        return context.get_dummy_value()

    return types.none(values, place), generate


ask_for: Any = intrinsic(_generate_ask_for)


def _generate_use_wide_vectors(typing: Any) -> Any:
    """Code of `use_wide_vectors`: only an attribute for the compiler."""
    del typing

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del signature, arguments
        # An attribute with a value, which llvmlite does not support.
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')
        return context.get_dummy_value()

    return types.none(), generate


use_wide_vectors: Any = intrinsic(_generate_use_wide_vectors)
"""Said in a function whose loops spend their time on arithmetic: sixteen numbers are done in a step, where there are
such instructions, and not eight, which compilers prefer as early processors slowed down with more."""
