"""Options that several of the learning commands have."""

from pathlib import Path
from typing import Annotated

import typer

from index.options.panels import OUTPUT

PatchFolders = Annotated[
    list[Path], typer.Argument(help="Folders of labelled patches, as cairn patches build makes or as published.")
]
NewFile = Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Descriptor file (.npz) to write.")]
