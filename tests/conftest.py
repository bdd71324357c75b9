"""What end-to-end tests share: a small collection of photos with known homographies, and the command line."""

import contextlib
import gc
import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

# Before a library reads it: threads that wait for each other make small work slow where other programs run.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings

from eval.demo.synthetic import _OBJECTS, DemoCollection, build_demo_collection
from tests.support.made_once import made_once

# Where other programs run, an example may take long, and nothing is wrong.
settings.register_profile("cairn", deadline=None, max_examples=15)
settings.register_profile("thorough", deadline=None)
settings.load_profile("cairn")

# The fixtures of these are every test's.
pytest_plugins = [
    f"tests.support.{name}" for name in ("browser", "picture_views", "postgresql", "written_photos", "sharded")
]

# Few objects, few views: enough for a ranking that can be wrong, and quick.
OBJECTS = ("cat", "coffee", "coins", "page")
VIEWS, DISTRACTORS = 3, 4


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    """Look for garbage only in what tests make: what they import and pytest collects stays, and is large."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Let each process import some tests before all: what one has rewritten and kept, the others need not."""
    gc.disable()
    gc.set_threshold(20_000)  # as `cairn` does
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != session.config.getini("testpaths"):
        return
    root = session.config.rootpath
    names = sorted(".".join(file.relative_to(root).with_suffix("").parts) for file in root.glob("tests/**/test_*.py"))
    for name in names[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(name)


@dataclass(frozen=True)
class Indexed:
    """The small collection."""

    folder: Path  # the collection
    photos: Path  # folder of its photos
    gt: Path  # ground truth in the layout of Oxford5K
    views: dict[str, np.ndarray]  # by stem: from the object's photograph to the view, (3, 3)
    boxes: dict[str, tuple[float, float, float, float]]  # by stem of the query: where the object is in it

    def homography(self, query: str, view: str) -> np.ndarray:
        """From the pixels of one view to those of another of the same object."""
        return self.views[view] @ np.linalg.inv(self.views[query])


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str
    wants_json: bool = False

    @property
    def json(self) -> dict[str, Any]:
        """The one object on standard output: anything else there is an error."""
        assert self.code in (0, 1), self.err
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def refused(self) -> str:
        """The one sentence on standard error of a request that was wrong."""
        assert self.code == 2, (self.code, self.out, self.err)
        assert self.err.startswith("cairn: ") and self.err.endswith((".\n", "…\n")), self.err
        assert self.err.count("\n") == 1
        sentence = self.err.removeprefix("cairn: ").strip()
        if not self.wants_json:
            assert self.out == ""
        else:
            reported = json.loads(self.out)
            assert reported["error"] == sentence and reported.keys() <= {"error", "kind"}
        return sentence


def changed(command: Sequence[object], *options: object) -> list[object]:
    """A command with options in addition to its own, or instead of those that it has already."""
    kept = list(command)
    for option in {one for one in options if str(one).startswith("--") and one in kept}:
        place = kept.index(option)
        del kept[place : place + 2]
    return [*kept, *options]


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Let nothing wait until what is written is on the disk: tests kill processes, but cut no power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_core() -> Iterator[None]:
    """Let work whose number of processes is not said be done in this one: others run tests on the other cores."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
        yield


class _Statements(dict[Any, Any]):
    """What SQLAlchemy has compiled, by all of a key but the engine's dialect."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key[1:], default)

    def __setitem__(self, key: Any, compiled: Any) -> None:
        super().__setitem__(key[1:], compiled)


@pytest.fixture(scope="session", autouse=True)
def statements_are_compiled_once() -> Iterator[None]:
    """Let all SQLite catalogues of this process share their compiled statements: tests open thousands of catalogues."""
    import sqlalchemy as sa

    create_engine, statements = sa.create_engine, _Statements()

    def create(address: Any, **options: Any) -> Any:
        engine = create_engine(address, **options)
        if engine.dialect.name != "sqlite":
            return engine
        sa.event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
        return engine.execution_options(compiled_cache=statements)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sa, "create_engine", create)
        yield


@pytest.fixture(scope="session", autouse=True)
def commands_are_built_once() -> Iterator[None]:
    """Let the command lines of this process share what Typer makes of commands: tests run thousands of them."""
    import typer.main

    import cairn

    make_app, get_command = cairn.make_app, cache(typer.main.get_command)
    made: dict[Any, Any] = {}

    def make(names: Iterable[str] = cairn.COMMANDS) -> Any:
        # A test may replace the function of a command.
        key = tuple((name, resolve_name(place)) for name, (place, _) in cairn.COMMANDS.items() if name in names)
        if key not in made:
            made[key] = make_app(names)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cairn, "make_app", make)
        patch.setattr(typer.main, "get_command", get_command)
        yield


@pytest.fixture(scope="session", autouse=True)
def certificates_are_read_once() -> Iterator[None]:
    """Let httpx's clients share the certificates that each would read, even for a server without TLS."""
    import httpx._transports.default as transports

    create = transports.create_ssl_context
    usual = cache(create)

    def context(verify: Any = True, cert: Any = None, trust_env: bool = True) -> Any:
        return usual() if verify is True and cert is None and trust_env else create(verify, cert, trust_env)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transports, "create_ssl_context", context)
        yield


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let no test write to the state folder of who runs it."""
    from retrieval.state.folder import STATE

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STATE, str(tmp_path_factory.mktemp("state") / "cairn"))
        yield


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoCollection:
    """Photos of few objects, for all processes of the run; nobody may change them."""
    return made_once(tmp_path_factory, "demo", _make_demo)


def _make_demo(folder: Path) -> DemoCollection:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eval.demo.synthetic._OBJECTS", tuple(entry for entry in _OBJECTS if entry[0] in OBJECTS))
        return build_demo_collection(folder, views=VIEWS, distractors=DISTRACTORS)


@pytest.fixture(scope="session")
def indexed(demo: DemoCollection, tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    """The demo photos, indexed once with descriptors kept: a copy for each process; nobody may change it."""
    made = made_once(tmp_path_factory, "indexed", partial(_index, demo))
    folder = tmp_path_factory.mktemp("indexed") / made.folder.name
    shutil.copytree(made.folder, folder)
    return replace(made, folder=folder)


def _index(demo: DemoCollection, place: Path) -> Indexed:
    from learning.labels.ground_truth import read_ground_truth
    from retrieval.collection.collection import Collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.indexing.adding import index_photos

    folder = place / "demo.cairn"
    with Collection.create(folder, CollectionOptions(keep_descriptors=True, signature="hamming-64")) as collection:
        report = index_photos(collection, [demo.images])
    assert (report.added, report.failed) == (demo.photos, [])
    record = json.loads(demo.homographies.read_text())
    views = {stem: np.array(view["homography"]) for stem, view in record["views"].items()}
    boxes = {query.stem: query.box for query in read_ground_truth(demo.gt)}
    return Indexed(folder, demo.images, demo.gt, views, boxes)


@pytest.fixture
def cairn(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `cairn ARGUMENTS…` in this process, as its script does."""
    from cairn import main

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["cairn", *map(str, arguments)])
        capfd.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ran(code, out, err, "--json" in arguments)

    return run


@pytest.fixture
def opened(indexed: Indexed) -> Iterator[Any]:
    """The small collection, open."""
    from retrieval.collection.collection import Collection

    with Collection.open(indexed.folder) as collection:
        yield collection
