"""Where modules lie, and what they may import: rooms (sub-packages) in one order, and no circle of modules."""

import ast
import re
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from retrieval.library.compiled import COMPILED
from tests.support.paths import ROOT
from tests.support.sources import nodes_of, tree_of

# A room imports only from those before it; ARCHITECTURE.md says what each is for.
ROOMS = (
    "index",
    "retrieval/state",
    "retrieval/metadata",
    "retrieval/photos",
    "retrieval/regions",
    "retrieval/descriptors",
    "retrieval/features",
    "retrieval/foreign",
    "retrieval/matching",
    "retrieval/catalogue",
    "retrieval/catalogue/tables",
    "retrieval/catalogue/curation",
    "retrieval/collection",
    "retrieval/indexing",
    "retrieval/search",
    "retrieval/shards",
    "retrieval/groups",
    "retrieval/integrity",
    "retrieval/curation",
    "retrieval/iiif",
    "retrieval/impressions",
    "retrieval/library",
    "retrieval/jobs",
    "retrieval/commands",
    "retrieval/web",
    "learning/measures",
    "learning/patches",
    "learning/building",
    "learning/mining",
    "learning/codes",
    "learning/convex",
    "learning/latent",
    "learning/blocks",
    "learning/boosting",
    "learning/labels",
    "learning/judge",
    "learning/similarity",
    "learning/reports",
    "learning/library",
    "learning/commands",
    "eval/protocols",
    "eval/retrieval",
    "eval",
    "eval/sets",
    "eval/rankings",
    "eval/hpatches",
    "eval/reproduce",
    "eval/papers",
    "eval/demo",
    "eval/tables",
    "eval/panel",
    "eval/library",
    "eval/commands",
)
PACKAGES = ("index", "retrieval", "learning", "eval")


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))}


def _room(module: str) -> str | None:
    """The room of a module: the nearest folder above it that is one; None for what is in none."""
    folder = MODULES[module].parent
    while folder != ROOT:
        if (name := folder.relative_to(ROOT).as_posix()) in ROOMS:
            return name
        folder = folder.parent
    return None


@cache
def _imported(module: str) -> tuple[str, ...]:
    """Modules of the project that a module imports, within functions and for types alone too."""
    found: list[str] = []
    for node in nodes_of(MODULES[module]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has an import relative to its folder"
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in MODULES else str(node.module) for name in whole]
        else:
            continue
        found += (name for name in names if name in MODULES and name != module)
    return tuple(found)


def test_every_module_has_a_room() -> None:
    homeless = [name for name, path in MODULES.items() if path.name != "__init__.py" and _room(name) is None]
    assert not homeless


def test_imports_run_one_way_between_rooms() -> None:
    wrong = []
    for module in MODULES:
        room = _room(module)
        for other in _imported(module):
            imported = _room(other)
            if room and imported and ROOMS.index(imported) > ROOMS.index(room):
                wrong.append(f"{module} ({room}) imports {other} ({imported})")
    assert not wrong
    assert not [name for name in MODULES if "cairn" in _imported(name)]


def test_no_modules_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter({module: set(_imported(module)) for module in MODULES}).prepare()
    except CycleError as error:
        raise AssertionError(f"circle: {' -> '.join(error.args[1])}") from None


def test_no_scripts_of_the_pages_import_each_other_in_a_circle() -> None:
    scripts = ROOT / "retrieval" / "web" / "static" / "js"
    imported = {
        path: {
            (path.parent / name).resolve()
            for name in re.findall(r"""(?:from |import\()"(\.[^"]+)\"""", path.read_text(encoding="utf-8"))
        }
        for path in scripts.rglob("*.js")
    }
    assert len(imported[scripts / "page.js"]) >= 5 and all(
        path.is_file() for some in imported.values() for path in some
    )
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        raise AssertionError(f"circle: {' -> '.join(path.name for path in error.args[1])}") from None


def test_compiled_functions_are_loaded_where_they_are_called_and_all_can_be_made_ready() -> None:
    """Numba takes half a second to load: it is imported within functions, and a list says what there is to load."""
    compiled = {module for module in MODULES if "index.kernels.compiling" in _imported(module)}
    assert compiled == set(COMPILED)
    early = [
        f"{module} imports {name}"
        for module in MODULES
        for node in tree_of(MODULES[module]).body
        if isinstance(node, ast.ImportFrom | ast.Import)
        for name in ([str(node.module)] if isinstance(node, ast.ImportFrom) else [])
        + [f"{getattr(node, 'module', '')}.{alias.name}".lstrip(".") for alias in node.names]
        if name in compiled
    ]
    assert not early


# Who alone may import a module, or what is below a folder, in addition to the modules below that folder.
ALLOWED = {
    "retrieval/catalogue/changes": (
        *("retrieval/catalogue", "retrieval/collection", "retrieval/indexing"),
        *("retrieval/integrity", "retrieval/curation"),
    ),
    "retrieval/indexing": (
        *("retrieval/integrity", "retrieval/library", "retrieval/commands"),  # commands: what options there are
        *("learning/judge", "learning/library", "eval/retrieval"),
    ),
    "retrieval/integrity": ("retrieval/library", "retrieval/commands"),
    "index/cluster": ("retrieval/indexing", "retrieval/shards", "retrieval/library"),
    "retrieval/shards": ("retrieval/groups", "retrieval/library", "learning/mining", "learning/library"),
}


# Of the catalogue the web asks these alone: what is decided of photos by their numbers, in one transaction; how a table
# is read; and what is seen of a catalogue that is not opened. All else it asks the library.
ASKED_BY_THE_WEB = {
    *(f"retrieval.catalogue.curation.{name}" for name in ("albums", "hidden", "rejections", "saved")),
    *(f"retrieval.catalogue.tables.{name}" for name in ("importing", "reading")),
    *("retrieval.catalogue.browsing", "retrieval.catalogue.schema"),
}


def test_the_web_asks_the_library_and_hardly_the_catalogue() -> None:
    requested = {
        (module, other)
        for module in MODULES
        for other in _imported(module)
        if module.startswith("retrieval.web.") and other.startswith("retrieval.catalogue")
    }
    assert {other for _, other in requested} <= ASKED_BY_THE_WEB and len(requested) <= 11


@pytest.mark.parametrize("place", ALLOWED)
def test_only_some_rooms_import_what_changes_a_collection_mends_it_or_knows_of_a_cluster(place: str) -> None:
    """Whether a collection is searched here or on a cluster is decided by the library: no command or page does."""
    name = place.replace("/", ".")
    within = tuple(module for module in MODULES if module == name or module.startswith(f"{name}."))
    wrong = [
        f"{module} imports {other}"
        for module in MODULES
        for other in _imported(module)
        if other in within and module not in within and _room(module) not in ALLOWED[place]
    ]
    assert within and not wrong


# How many are more than that: compiled functions, what a command line or a public name takes, a migration.
MANY_PARAMETERS, LONG_FUNCTIONS, SHARED_NAMES = 12, 7, 10


def test_functions_have_at_most_eight_parameters_and_sixty_lines_and_classes_names_of_their_own() -> None:
    """All but a few; these numbers only fall. A docstring does not count."""
    many, long, names = [], [], Counter[str]()
    for module, path in MODULES.items():
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                names[node.name] += 1
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            taken = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len(taken) - (taken[:1] in (["self"], ["cls"])) > 8:
                many.append(f"{module}.{node.name}")
            said = node.body[0] if ast.get_docstring(node) is not None else None
            documented = int(said.end_lineno or 0) - said.lineno + 1 if said is not None else 0
            if int(node.end_lineno or 0) - node.lineno + 1 - documented > 60:
                long.append(f"{module}.{node.name}")
    shared = [name for name, count in names.items() if count > 1]
    assert len(many) <= MANY_PARAMETERS and len(long) <= LONG_FUNCTIONS and len(shared) <= SHARED_NAMES, (many, long)


def test_the_page_on_architecture_has_every_room_in_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+)/` \| ([^|]+) \| [^|]+ \|$", text, re.MULTILINE)
    assert tuple(room for room, _ in rows) == ROOMS
    assert all(question.endswith("?") for _, question in rows)


def test_errors_below_commands_name_no_option_and_no_command_in_their_text() -> None:
    """Each reader names them in another way: `index.messages` says how."""
    wrong = []
    for module, path in MODULES.items():
        if ".commands." in module or module.endswith(("command", "commands")):
            continue
        for node in nodes_of(path):
            if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
                continue
            texts = [str(one.value) for one in ast.walk(node.exc) if isinstance(one, ast.Constant)]
            named = re.compile(r"(?<![{\w-])--[a-z]|(?<!{)\bcairn [a-z]")
            wrong += [f"{module}, line {node.lineno}" for text in texts if named.search(text.split("{cairn")[0])]
    assert not wrong


def test_sentences_with_places_are_given_the_values_of_these() -> None:
    wrong = []
    for module, path in MODULES.items():
        for node in nodes_of(path):
            if isinstance(node, ast.Raise):
                node = node.exc
            elif not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Message"):
                continue
            if not isinstance(node, ast.Call):
                continue
            given = {one.arg for one in node.keywords} - {"cause", "kind", "retry"}
            for text in [
                one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ][:1]:
                if {*re.findall(r"\{([A-Za-z_]+)\}", text)} != given:
                    wrong.append(f"{module}, line {node.lineno}: {text}")
    assert not wrong
