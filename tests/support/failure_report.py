"""Plugin of pytest, loaded by scripts/test: if tests fail, the state of the machine is printed on standard error.

It is printed before pytest's closing line, which stays last.
"""

import subprocess
import sys

from tests.support.paths import ROOT

_ASKED = [sys.executable, "-m", "cairn", "info", "--environment"]


def pytest_terminal_summary(exitstatus: int) -> None:
    if exitstatus in (0, 5):  # all passed, or none selected
        return
    # A subprocess: the cause of the failures may kill it, too.
    reported = subprocess.run(_ASKED, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    print(f"cairn info --environment:\n{reported.stdout}{reported.stderr}", file=sys.stderr, flush=True)
