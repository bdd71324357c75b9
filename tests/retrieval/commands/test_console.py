from pathlib import Path

import pytest

from index.kernels import keeping
from index.kernels.waiting import compiling_begins
from retrieval.commands.console import run


@pytest.mark.parametrize("folder", [None, Path("kept")])
def test_who_waits_for_functions_to_be_compiled_is_told_once(
    folder: Path | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(**how: object) -> int:
        compiling_begins()
        compiling_begins()
        return 0

    monkeypatch.setattr(keeping, "cache_folder", lambda: folder)
    with pytest.raises(SystemExit):
        run(command)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("cairn: Compiling functions for this processor") and ("CAIRN_CACHE" in line) == (not folder)
