"""Build the documentation site: assemble its sources, and run Sphinx on them. A warning is an error."""

import argparse
import sys
import tempfile
from pathlib import Path

from documentation.staging import DOCS, ROOT, stage


def main() -> int:
    """Build it; return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/docs", description="Build the documentation site.")
    parser.add_argument("--quick", action="store_true", help="show the gallery's examples without running them")
    parser.add_argument("--out", type=Path, default=ROOT / "site", metavar="FOLDER", help="default: %(default)s")
    arguments = parser.parse_args()
    from sphinx.cmd.build import build_main

    with tempfile.TemporaryDirectory(prefix="cairn-docs-") as work:
        source = Path(work) / "docs"
        stage(source)
        options = ["-W", "--keep-going", "-q", "-E", "-b", "html", "-c", str(DOCS), "-d", f"{work}/doctrees"]
        options += ["-D", "plot_gallery=0"] * arguments.quick
        code = int(build_main([*options, str(source), str(arguments.out)]))
    if not code:
        print(f"The documentation is built: open {arguments.out / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main())
