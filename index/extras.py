"""The optional packages: the extra of each, and the command that installs it."""

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
    """The command that installs the package of an optional extra, quoted for a shell, however Cairn was installed."""
    package = EXTRAS[extra]
    return f"pip install {package}" if package.replace("-", "").isalnum() else f'pip install "{package}"'


def require_matplotlib() -> None:
    """Raise a CairnError if matplotlib is not installed."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise CairnError(f"Plots need matplotlib: {install_command('plots')}.") from error


def require_h5py() -> None:
    """Raise CairnError if h5py is not installed."""
    if find_spec("h5py") is None:
        raise CairnError(f"HDF5 needs an optional package: {install_command('hdf5')}.")
