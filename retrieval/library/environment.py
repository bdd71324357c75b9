"""Facts of the installation and the machine for bug reports: versions, processor, kernels, caches."""

import contextlib
import locale
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from index.cluster.storage import object_cache
from index.parallel import cores
from index.reports import Report
from retrieval.photos.listing import CACHE

DISTRIBUTIONS = {
    "Cairn": ("cairn-search", ""),
    "NumPy": ("numpy", "numpy"),
    "SciPy": ("scipy", "scipy.linalg"),
    "OpenCV": ("opencv-contrib-python-headless", "cv2"),
    "faiss": ("faiss-cpu", "faiss"),
    "Numba": ("numba", "numba"),
    "llvmlite": ("llvmlite", "llvmlite.binding"),
    "SQLAlchemy": ("sqlalchemy", "sqlalchemy"),
}
"""Packages whose versions are reported: the distribution, and the module that it loads as."""

HIDDEN = "(set; not shown)"
"""Stands for the value of a variable that may hold a secret."""

_TOLD = re.compile(
    r"(OPENBLAS|OMP|KMP|GOMP|MKL|BLIS|NUMBA|NPY|OPENCV|FAISS|MALLOC|CAIRN|LC)_\w+"
    r"|LANG|LANGUAGE|TZ|TMPDIR|XDG_CACHE_HOME|LD_PRELOAD|PYTHON(HASHSEED|UTF8|IOENCODING|DONTWRITEBYTECODE|PYCACHEPREFIX)"
)
_OURS = {"CAIRN_CACHE", "CAIRN_DATASETS", "CAIRN_PHOTOS", "CAIRN_PROGRESS", "CAIRN_PYTHON"}
_SECRET_NAME = re.compile(r"PASS|SECRET|TOKEN|KEY|CREDENTIAL|AUTH|ADDRESS|UR[IL]|DSN|DATABASE", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"://|@|pass|secret|token", re.IGNORECASE)


@dataclass(frozen=True)
class Environment(Report):
    """Installation, machine and settings."""

    versions: dict[str, str | None]  # of Python, Cairn and its dependencies; None if not installed
    not_loaded: dict[str, str]  # dependencies that cannot be loaded, with reasons
    platform: dict[str, str]  # ``system``, ``machine`` and the C library, ``libc``
    # its ``name``; ``numba``: the target of Numba's compiler; ``numpy_baseline``, ``numpy_found`` and
    # ``numpy_missing``: CPU features that NumPy requires, detected and lacks; ``opencv`` and ``faiss``: features that
    # these were compiled for, or detected
    processor: dict[str, Any]
    # for each loaded library of threads or linear algebra: ``file``, ``kind``, ``version``, ``kernel`` (the kind of
    # processor whose code it runs, or None) and ``threads``
    linear_algebra: list[dict[str, Any]]
    # ``machine``: all; ``usable``: available to this process; ``opencv``, ``faiss`` and ``numba``: threads
    cores: dict[str, int | None]
    # environment variables that affect results or caches. Values that may be secret are `HIDDEN`
    variables: dict[str, str]
    # the owner (``of``), the ``folder`` (None without one), and whether it is ``writable``
    caches: list[dict[str, Any]]
    # ``umask``, ``locale``, ``time_zone``, ``filesystem_encoding`` and ``output_encoding``; ``decoding``: abilities
    # of the processes that decode photos
    process: dict[str, Any]


def describe_environment(collection: Path | None = None) -> Environment:
    """Describe the installation, the machine, and the cache of a collection, which is not opened.

    Missing or broken parts are reported, and do not raise.
    """
    variables = dict(os.environ)  # before libraries add to them
    not_loaded = _load(module for _, module in DISTRIBUTIONS.values() if module)
    return Environment(
        versions={
            "Python": platform.python_version(),
            **{name: _version(distribution) for name, (distribution, _) in DISTRIBUTIONS.items()},
        },
        not_loaded=not_loaded,
        platform={
            "system": platform.platform(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()).strip(),
        },
        processor=_processor(),
        linear_algebra=_linear_algebra(),
        cores=_cores(),
        variables=reported_variables(variables),
        caches=_caches(collection),
        process={
            "umask": f"{_umask():03o}",
            "locale": locale.setlocale(locale.LC_CTYPE),
            "time_zone": "/".join(time.tzname),
            "filesystem_encoding": sys.getfilesystemencoding(),
            "output_encoding": getattr(sys.stdout, "encoding", None),
            "decoding": _decoding(),
        },
    )


def reported_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Select the environment variables for a report, sorted, and hide values that may be secret."""
    return {
        name: HIDDEN if _may_be_secret(name, value) else value
        for name, value in sorted(variables.items())
        if _TOLD.fullmatch(name)
    }


def _may_be_secret(name: str, value: str) -> bool:
    if name.startswith("CAIRN_") and name not in _OURS:  # a folder of the user, with unknown contents
        return True
    return bool(_SECRET_NAME.search(name) or _SECRET_VALUE.search(value))


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _load(modules: Iterable[str]) -> dict[str, str]:
    """Load modules, so that their libraries can be queried; return those that cannot be loaded, with reasons."""
    failed = {}
    for name in modules:
        try:
            import_module(name)
        except Exception as error:  # whatever a broken installation raises
            failed[name] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return failed


def _processor() -> dict[str, Any]:
    """Name and features of the processor, as reported by each library."""
    facts: dict[str, Any] = {"name": _processor_name()}
    with contextlib.suppress(Exception):
        import llvmlite.binding
        import numba

        facts["numba"] = str(numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name())  # type: ignore[attr-defined]
    with contextlib.suppress(Exception):
        import numpy as np

        features: Any = np.show_config(mode="dicts")
        features = features["SIMD Extensions"]
        for ours, theirs in (("baseline", "baseline"), ("found", "found"), ("missing", "not found")):
            facts[f"numpy_{ours}"] = list(features.get(theirs, []))
    with contextlib.suppress(Exception):
        import cv2

        facts["opencv"] = cv2.getCPUFeaturesLine().split()
    with contextlib.suppress(Exception):
        import faiss

        facts["faiss"] = faiss.get_compile_options().split()
    return facts


def _processor_name() -> str:
    with contextlib.suppress(OSError):
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(errors="replace"), re.MULTILINE)
        if match:
            return match[1]
    return platform.processor() or platform.machine()


def _linear_algebra() -> list[dict[str, Any]]:
    """Which libraries of linear algebra and of threads are loaded, and whose code they run."""
    with contextlib.suppress(Exception):
        from threadpoolctl import threadpool_info

        return [
            {
                "file": Path(one["filepath"]).name,
                "kind": one["internal_api"],
                "version": one["version"],
                "kernel": one.get("architecture"),
                "threads": one["num_threads"],
            }
            for one in threadpool_info()
        ]
    return []


def _cores() -> dict[str, int | None]:
    counted: dict[str, int | None] = {"machine": os.cpu_count(), "usable": cores()}
    with contextlib.suppress(Exception):
        import cv2

        counted["opencv"] = cv2.getNumThreads()
    with contextlib.suppress(Exception):
        import faiss

        counted["faiss"] = faiss.omp_get_max_threads()
    with contextlib.suppress(Exception):
        import numba

        counted["numba"] = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    return counted


def _caches(collection: Path | None) -> list[dict[str, Any]]:
    folders: dict[str, Path | None] = {"compiled functions": None, "copies from object stores": None}
    with contextlib.suppress(Exception):
        from index.kernels.keeping import cache_folder

        folders["compiled functions"] = cache_folder()
    with contextlib.suppress(RuntimeError):  # no home
        folders["copies from object stores"] = object_cache()
    if collection is not None:
        folders["pictures"] = collection / CACHE
    folders["temporary files"] = None
    with contextlib.suppress(OSError):  # no folder is writable
        folders["temporary files"] = Path(tempfile.gettempdir())
    return [
        {"of": of, "folder": None if folder is None else str(folder), "writable": _is_writable(folder)}
        for of, folder in folders.items()
    ]


def _is_writable(folder: Path | None) -> bool:
    """Whether we may write to a folder, or make it if it is missing."""
    if folder is None:
        return False
    with contextlib.suppress(OSError):
        existing = next((one for one in (folder, *folder.absolute().parents) if one.exists()), None)
        return existing is not None and existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    return False


def _decoding() -> str | None:
    with contextlib.suppress(Exception):
        from retrieval.photos.apart import rights

        return rights()
    return None


def _umask() -> int:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text(errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    now = os.umask(0o077)  # it can only be read by setting it
    os.umask(now)
    return now
