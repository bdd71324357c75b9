"""The cache of code compiled by Numba: in CAIRN_CACHE, else next to the module, else in the user's cache folder."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, runtime
from numba.np import linalg

from index.files.names import CACHE_VARIABLE
from index.kernels.waiting import compiling_begins

_settings: Any = numba.config
_caching: Any = caching
_runtime: Any = runtime
_FunctionCache: Any = caching.FunctionCache


class CompiledCache(_FunctionCache):  # type: ignore[misc]
    """The cached code of a function, loaded without the compiler, which takes Numba half a second to load."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Load the cached code for a signature; None if it is missing."""
        try:
            _runtime.rtsys.initialize(context)  # symbols that the machine code refers to
            with _linear_algebra_is_there():
                overload = self._load_overload(signature, context)
        except Exception:  # another Numba version may need more, and on Windows another process may be writing
            overload = super().load_overload(signature, context)
        if overload is None:
            compiling_begins()
        return overload


@contextlib.contextmanager
def _linear_algebra_is_there() -> Iterator[None]:
    """Keep Numba's module of sums from looking for SciPy's BLAS, which is slow, until a product is compiled."""
    look = getattr(linalg, "ensure_blas", None)
    vars(linalg)["ensure_blas"] = lambda: None
    try:
        yield
    finally:
        vars(linalg)["ensure_blas"] = look


@contextlib.contextmanager
def cache_settings() -> Iterator[None]:
    """Let Numba cache its code in that folder, never in a folder ``~`` if home is unknown: cached code is executed."""
    before = {name: getattr(_settings, name, "") for name in ("CACHE_DIR", "CACHE_LOCATOR_CLASSES")}
    try:
        if os.environ.get(CACHE_VARIABLE) and not before["CACHE_DIR"]:
            _settings.CACHE_DIR = str(Path(os.environ[CACHE_VARIABLE]).absolute() / "compiled")
        if not Path("~").expanduser().is_absolute() and not os.environ.get("XDG_CACHE_HOME"):
            _settings.CACHE_LOCATOR_CLASSES = "UserProvidedCacheLocator,InTreeCacheLocator"
        yield
    finally:
        for name, value in before.items():
            setattr(_settings, name, value)


def cache_folder() -> Path | None:
    """Folder of the cached functions of this package; None if Numba finds no writable one."""
    with cache_settings(), contextlib.suppress(RuntimeError, OSError):
        return Path(_caching.CompileResultCacheImpl(cache_folder).locator.get_cache_path())
    return None
