"""Commands: data list, get, check."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from index.options.panels import MEASURED, OUTPUT, RUNNING
from retrieval.commands.console import FAILED, print_json, progress_bars, say
from retrieval.commands.options import Json, Quiet

if TYPE_CHECKING:
    from eval.sets.checks import SetFinding

data = typer.Typer(help="Get the published sets that evaluations run on.", no_args_is_help=True)

Names = Annotated[list[str], typer.Argument(metavar="NAME", help="Sets, as cairn data list names them.")]
Root = Annotated[
    Path, typer.Option(rich_help_panel=MEASURED, help="Folder of the sets, in which each has a folder of its own.")
]
Manifests = Annotated[
    Path | None,
    typer.Option(rich_help_panel=RUNNING, help="Folder with manifests (NAME.json) that take the place of Cairn's own."),
]
_MOST_NAMED = 10  # missing files listed without --json


@data.command("list")
def list_sets(
    root: Annotated[
        Path | None, typer.Option(rich_help_panel=MEASURED, help="Say of each set whether it is below this folder.")
    ] = None,
    manifests: Manifests = None,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """List the sets that are known, how large they are, and under which terms their authors give them."""
    from dataclasses import asdict

    from eval.sets.checks import check
    from eval.sets.layouts import NAMES
    from eval.sets.manifests import read_manifest

    known = [read_manifest(name, manifests) for name in NAMES]
    findings = {one.name: check(one.name, root, manifests) for one in known} if root is not None else {}
    if json:
        there = {name: {"whole": one.whole, "folder": one.folder} for name, one in findings.items()}
        print_json(
            {"sets": [{**asdict(one), "about_bytes": one.about_bytes, **there.get(one.name, {})} for one in known]}
        )
        return
    for one in known:
        size = f"{one.about_bytes / 1e9:.1f} GB" if one.about_bytes > 5e7 else ""
        size += "+" * any(download.about_bytes is None for download in one.downloads) if size else ""
        state = {True: "there", False: "part of it", None: ""}[_state(findings.get(one.name))]
        say(
            f"{one.name:18}  {size:>8}  {state:10}  {one.title}"
            if findings
            else f"{one.name:18}  {size:>8}  {one.title}"
        )
        if not quiet:
            say(f"{'':18}  {'':8}  {one.licence}")


def _state(finding: "SetFinding | None") -> bool | None:
    if finding is None or finding.folder is None:
        return None
    return finding.whole


@data.command()
def get(
    names: Names,
    root: Root,
    manifests: Manifests = None,
    keep_archives: Annotated[
        bool,
        typer.Option("--keep-archives", rich_help_panel=OUTPUT, help="Keep what was downloaded once it is unpacked."),
    ] = False,
    quiet: bool = Quiet,
    json: bool = Json,
) -> None:
    """Download sets, with what they need of others, and unpack them where the evaluators look.

    What is there is left alone, in whichever common layout it is; a download that was cut goes on where it ended.
    """
    from eval.sets.getting import get as get_sets

    titles = {"download": "Downloading (MB)", "unpack": "Unpacking (%)"}
    with progress_bars(quiet or json, titles) as tell:
        got = get_sets(names, root, tell, manifests=manifests, keep_archives=keep_archives)
    if json:
        print_json({"root": str(root), "sets": [one.as_json() for one in got]})
    else:
        for one in got:
            _say(one.finding, {"there": "is there", "got": "was downloaded", "incomplete": "is not whole"}[one.status])
            for file in one.files if not quiet else ():
                say(f"  {file['file']}: SHA-256 {file['sha256']}")
    if not all(one.done for one in got):
        raise typer.Exit(FAILED)


@data.command()
def check(names: Names, root: Root, manifests: Manifests = None, quiet: bool = Quiet, json: bool = Json) -> None:
    """Say whether sets are whole: what should be there, what is, and what is missing; exit code 1 if anything is."""
    from eval.sets.checks import check as check_set

    with progress_bars(quiet or json, {"check": "Looking (sets)"}) as tell:
        findings = []
        for number, name in enumerate(names):
            tell("check", number, len(names))
            findings.append(check_set(name, root, manifests))
    if json:
        print_json({"root": str(root), "sets": [one.as_json() for one in findings]})
    else:
        for one in findings:
            _say(one, "is whole" if one.whole else "is not there" if one.folder is None else "is not whole")
    if not all(one.whole for one in findings):
        raise typer.Exit(FAILED)


def _say(finding: "SetFinding", state: str) -> None:
    counts = ", ".join(
        f"{finding.found.get(part, 0):,} of {wanted:,} {part.replace('_', ' ')}"
        for part, wanted in finding.wanted.items()
    )
    where = f" in {finding.folder}" if finding.folder is not None else ""
    say(f"{finding.name} {state}{where}: {counts}")
    for title, names in (
        ("missing", finding.missing),
        ("empty", finding.empty),
        ("known to be damaged in the published set, and left out", finding.known_bad),
    ):
        if names:
            more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
            say(f"  {title}: {', '.join(names[:_MOST_NAMED])}{more}")
