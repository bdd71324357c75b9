"""The examples of the documentation use public names alone: what a reader of them has, too."""

import ast
import json
from pathlib import Path

import pytest

from cairn import PUBLIC
from tests.support.paths import ROOT

EXAMPLES = [path for folder in ("examples", "gallery") for path in sorted((ROOT / "docs" / folder).rglob("*.py"))]
NOTEBOOKS = sorted((ROOT / "docs" / "examples").glob("*.ipynb"))
OWN = ("index", "retrieval", "learning", "eval", "scripts", "tests")


def _source(path: Path) -> str:
    if path.suffix == ".py":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = [line for cell in cells if cell["cell_type"] == "code" for line in cell["source"]]
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines if not line.startswith(("%", "!")))


@pytest.mark.parametrize("path", [*EXAMPLES, *NOTEBOOKS], ids=lambda path: path.name)
def test_an_example_uses_public_names_alone(path: Path) -> None:
    for node in ast.walk(ast.parse(_source(path))):
        if isinstance(node, ast.Import):
            assert not [alias.name for alias in node.names if alias.name.split(".")[0] in OWN]
            assert not [alias.name for alias in node.names if alias.name.startswith("cairn.")]
        elif isinstance(node, ast.ImportFrom):
            assert str(node.module).split(".")[0] not in OWN
            if node.module == "cairn":
                assert {alias.name for alias in node.names} <= PUBLIC.keys()
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cairn":
            assert node.attr in PUBLIC or node.attr == "__version__", node.attr
