"""The types of `import cairn`; written by scripts/public_names.py."""

from collections.abc import Collection as _Names

import typer as _typer

__all__ = [
    "__version__",
]
__version__: str
PUBLIC: dict[str, str]
COMMANDS: dict[str, tuple[str, str]]

def make_app(names: _Names[str] = ...) -> _typer.Typer: ...
def version() -> str: ...
def main() -> None: ...
