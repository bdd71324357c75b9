"""The optional packages: which extra each belongs to, and how a message says to install it."""

from importlib.util import find_spec

from index.errors import CairnError

EXTRAS = {
    "heic": "pillow-heif",
    "pdf": "pypdfium2",
    "postgresql": "psycopg[binary]",
    "pyflann": "pyflann-ibeis",
    "cluster": "distributed",
    "s3": "s3fs",
    "plots": "matplotlib",
    "peers": "pycolmap",
    "hdf5": "h5py",
}
"""The package behind each optional extra, as `pip` takes it."""


def install_command(extra: str) -> str:
    """The command that installs what an optional extra needs, quoted for a shell: by the package itself, wherever Cairn
    is from.
    """
    package = EXTRAS[extra]
    return f"pip install {package}" if package.replace("-", "").isalnum() else f'pip install "{package}"'


def require_matplotlib() -> None:
    """Raise a CairnError if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise CairnError(f"Plots need matplotlib: {install_command('plots')}.") from error


def require_h5py() -> None:
    """Raise CairnError if what reads and writes HDF5 is not installed."""
    if find_spec("h5py") is None:
        raise CairnError(f"HDF5 needs an optional package: {install_command('hdf5')}.")
