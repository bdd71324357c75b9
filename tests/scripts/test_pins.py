"""Requirements with hashes, and the bill of materials that is made of them."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from scripts.pins.bom import LICENCES, SCOPES, Pin, bill_of_materials, read_pins
from scripts.pins.requirements import bare, with_hashes
from tests.support.paths import ROOT

A, B, C = (letter * 64 for letter in "abc")
TEXT = f"""\
# What is needed.
-r more.txt
One_Thing==1.0 \\
    --hash=sha256:{A} \\
    --hash=sha256:{B}
other==2.0.post1; sys_platform == "win32" \\
    --hash=sha256:{C}
"""
PINS = [Pin("one-thing", "1.0", "", (A, B)), Pin("other", "2.0.post1", 'sys_platform == "win32"', (C,))]


def test_pins_are_read_with_their_hashes() -> None:
    assert read_pins(TEXT) == PINS
    assert bare(TEXT).splitlines()[2:] == ["One_Thing==1.0", 'other==2.0.post1; sys_platform == "win32"']
    assert [pin.hashes for pin in read_pins(bare(TEXT))] == [(), ()]


def test_hashes_are_written_in_place_of_those_that_were_there() -> None:
    assert with_hashes(bare(TEXT), PINS) == with_hashes(TEXT, PINS) == TEXT
    newer = [Pin("one-thing", "1.0", "", (C,)), PINS[1]]
    assert f"One_Thing==1.0 \\\n    --hash=sha256:{C}\nother" in with_hashes(TEXT, newer)
    with pytest.raises(KeyError):
        with_hashes(TEXT, PINS[:1])


def test_the_files_are_as_the_script_writes_them() -> None:
    for name in SCOPES:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert with_hashes(text, read_pins(text)) == text


@pytest.mark.parametrize("change", ["", "x"])
def test_a_file_with_another_hash_is_not_installed(tmp_path: Path, change: str) -> None:
    wheel = tmp_path / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toy.py", "")
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        archive.writestr("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("toy-1.0.dist-info/RECORD", "toy.py,,\n")
    right = Pin("toy", "1.0", "", (hashlib.sha256(wheel.read_bytes() + change.encode()).hexdigest(),))
    wanted = with_hashes("toy==1.0", [right]).replace("toy==1.0", f"toy @ {wheel.as_uri()}")
    (tmp_path / "requirements.txt").write_text(wanted)
    options = ("--isolated", "--no-index", "--dry-run", "--require-hashes", "--requirement")
    command = [sys.executable, "-m", "pip", "install", *options, str(tmp_path / "requirements.txt")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode == 0) is (change == ""), done.stderr
    assert change == "" or "DO NOT MATCH THE HASHES" in done.stderr


def test_the_bill_of_materials_names_each_pin_once() -> None:
    bill = bill_of_materials(ROOT)
    assert bill == bill_of_materials(ROOT)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    pins = {name: read_pins((ROOT / name).read_text(encoding="utf-8")) for name in SCOPES}
    found = [(one["name"], one["version"], one["scope"]) for one in bill["components"]]
    assert found == [(pin.name, pin.version, SCOPES[name]) for name, several in pins.items() for pin in several]
    references = [one["bom-ref"] for one in bill["components"]]
    assert len(references) == len(set(references))
    (own,) = bill["dependencies"]
    assert own["ref"] == bill["metadata"]["component"]["bom-ref"]
    assert own["dependsOn"] == [f"pkg:pypi/{pin.name}@{pin.version}" for pin in pins["requirements.txt"]]
    numpy = next(one for one in bill["components"] if one["name"] == "numpy")
    assert "BSD-3-Clause" in numpy["licenses"][0]["expression"]
    assert len(numpy["externalReferences"][0]["hashes"]) > 10


def test_licences_are_of_what_is_pinned() -> None:
    known = json.loads((ROOT / LICENCES).read_text(encoding="utf-8"))
    names = {pin.name for name in SCOPES for pin in read_pins((ROOT / name).read_text(encoding="utf-8"))}
    assert known and known.keys() <= names


def test_the_bill_of_materials_keeps_to_its_schema() -> None:
    """Where the library of CycloneDX is installed, with what it validates by."""
    pytest.importorskip("jsonschema")
    schema = pytest.importorskip("cyclonedx.schema")
    validation = pytest.importorskip("cyclonedx.validation.json")
    validator = validation.JsonStrictValidator(schema.SchemaVersion.V1_6)
    assert validator.validate_str(json.dumps(bill_of_materials(ROOT))) is None
