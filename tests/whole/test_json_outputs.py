"""The reference of what --json prints: every command and every key of it, compared with real outputs."""

import ast
import re
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

import cairn as library
from index.reports import Report
from tests.conftest import Indexed, Ran
from tests.support.paths import ROOT
from tests.whole.test_docs import COMMANDS

PAGE = ROOT / "docs" / "reference" / "json.md"
WITH_JSON = [
    " ".join(path)
    for path, command in COMMANDS.items()
    if any("--json" in one.opts for one in command.params) and not hasattr(command, "commands")
]


def _sections() -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _keys(command: str) -> set[str]:
    """The keys that the page names for a command."""
    rows = re.findall(r"^\| (`.*?) \| ", _sections()[command], re.MULTILINE)
    return {key for row in rows for key in re.findall(r"`([^`]+)`", row)}


def test_every_command_that_prints_json_has_a_section() -> None:
    assert list(_sections()) == WITH_JSON


def test_every_key_that_a_command_names_is_on_the_page() -> None:
    named = set()
    for path in [*ROOT.glob("*/commands/*.py"), *ROOT.glob("*/library/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            said: ast.expr | None = None
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print_json":
                said = node.args[0]
            elif isinstance(node, ast.AugAssign) and getattr(node.target, "id", "") == "told":  # as `to_dict` gives it
                said = node.value
            if isinstance(said, ast.Dict):
                named |= {str(key.value) for key in said.keys if isinstance(key, ast.Constant)}
    # Reports are printed field by field, but for those that say otherwise themselves.
    for name in library.PUBLIC:
        getattr(library, name)
    plain = [kind for kind in Report.__subclasses__() if kind.to_dict is Report.to_dict]
    named |= {one.name for kind in plain for one in fields(kind)}
    text = PAGE.read_text(encoding="utf-8")
    assert len(named) > 60
    assert not {key for key in named if f"`{key}`" not in text and f'"{key}"' not in text}


@pytest.fixture(scope="module")
def living(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the small collection, to be changed."""
    folder = tmp_path_factory.mktemp("living") / "c.cairn"
    shutil.copytree(indexed.folder, folder)
    return folder


def test_what_commands_print_has_the_keys_of_the_page(
    cairn: Callable[..., Ran], indexed: Indexed, living: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("name,title\ncat_001.jpg,A cat\nnowhere.jpg,Nothing\n")
    alone, own = tmp_path / "alone", tmp_path / "own.cairn"  # next to which sidecars may be written
    alone.mkdir()
    shutil.copy(indexed.photos / "cat_001.jpg", alone)
    assert cairn("index", own, alone).code == 0
    runs: dict[str, list[list[object]]] = {
        "cairn index": [[living, indexed.photos]],
        "cairn query": [[living, "cat_001.jpg", "--turns", 1]],
        "cairn info": [[living], ["--environment"]],
        "cairn metadata": [
            [living],
            [living, table],
            [living, "--refresh"],
            [living, "--photo", "cat_001.jpg"],
            [living, "--export", tmp_path / "out.csv"],
            [own, "--write-sidecars"],
        ],
        "cairn group": [[living, "--workers", 1]],
        "cairn annotations": [[living, "--out", tmp_path / "matches.jsonld"]],
        "cairn impressions": [[living, "page_001.jpg", "page_003.jpg", *more] for more in ([], ["--clock", "breaks"])],
        "cairn remove": [[living, "cat_002.jpg"]],
        "cairn compact": [[living]],
        "cairn check": [[living]],
        "cairn repair": [[living]],
        "cairn backup": [[living, tmp_path / "backup"]],
        "cairn compress": [[ROOT / "data/models/cairn.npz", "--bits", 128, "--out", tmp_path / "small.npz"]],
        "cairn data list": [[]],
        "cairn data check": [["oxford5k", "--root", tmp_path]],
    }
    for command, several in runs.items():
        printed: set[str] = set()
        for arguments in several:
            printed |= cairn(*command.split()[1:], *arguments, "--json").json.keys()
        assert printed == _keys(command), command
