"""Plugin of pytest, which scripts/test loads: where tests fail, what to know of the machine is on standard error.

It is said before pytest's closing line, which stays the last one.
"""

import subprocess
import sys

from tests.support.paths import ROOT

_ASKED = [sys.executable, "-m", "cairn", "info", "--environment"]


def pytest_terminal_summary(exitstatus: int) -> None:
    if exitstatus in (0, 5):  # all passed, or none was chosen
        return
    # A process of its own: what made tests fail may end it, too.
    told = subprocess.run(_ASKED, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    print(f"cairn info --environment:\n{told.stdout}{told.stderr}", file=sys.stderr, flush=True)
