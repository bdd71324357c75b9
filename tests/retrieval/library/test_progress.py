"""How long commands tell how far they are: bars on a terminal, lines elsewhere."""

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from retrieval.commands.console import progress_bars
from retrieval.library import progress
from retrieval.library.progress import (
    EVERY,
    INDEXING,
    VARIABLE,
    LastReports,
    Pace,
    ProgressWriter,
    bars,
    progress_descriptor,
)


class Clock:
    """Time that passes only where somebody waits."""

    def __init__(self, steps: list[tuple[str, int, int] | None]) -> None:
        self.now = 0.0
        self.told = LastReports(INDEXING, lambda: self.now)
        self._steps = iter(steps)

    def wait(self, seconds: float) -> bool:
        """Let the time pass, and a step get on; True, for the end, after the last."""
        self.now += seconds
        step = next(self._steps, "end")
        if step == "end":
            return True
        if isinstance(step, tuple):
            self.told.tell(*step)
        return False


def test_without_a_terminal_a_line_is_said_every_half_minute() -> None:
    steps = [
        None,
        ("extract", 1200, 20_000),
        ("extract", 2400, 20_000),
        None,
        ("vocabulary", 1_234_567, 4_000_000),
        ("vocabulary", 2_034_567, 4_000_000),
        ("index", 20_000, 20_000),
    ]
    clock = Clock(steps)
    said: list[tuple[float, str]] = []
    clock.told.speak(clock.wait, lambda line: said.append((clock.now, line)))
    assert said == [
        (30, "cairn: Working, 30 s so far."),
        (60, "cairn: Features: 1,200 of 20,000 photos (6%), 1 min 0 s so far."),
        (90, "cairn: Features: 2,400 of 20,000 photos (12%), 40.0 photos/s, 7 min 20 s left, 1 min 30 s so far."),
        (120, "cairn: Features: 2,400 of 20,000 photos (12%), 20.0 photos/s, 14 min 40 s left, 2 min 0 s so far."),
        (150, "cairn: Vocabulary: 30%, 2 min 30 s so far."),
        (180, "cairn: Vocabulary: 50%, 1 min 14 s left, 3 min 0 s so far."),
        (210, "cairn: Indexing done; still working, 3 min 30 s so far."),
    ]


def test_the_rate_is_that_of_the_last_minutes() -> None:
    now = 0.0
    pace = Pace(lambda: now)
    assert pace.rate() == 0.0 == pace.describe(5, "photos").count("s")
    for second in range(1000):  # what an earlier run did is counted at once; then 10 a second, then 2
        now = float(second)
        pace.tell(50_000 + (10 * second if second < 500 else 5000 + 2 * (second - 500)))
        if second == 400:
            assert pace.rate() == pytest.approx(10)
    assert pace.rate() == pytest.approx(2, rel=0.05)
    assert pace.describe(4 * 3600, "photos") == "2.0 photos/s, 2 h 0 min left"
    pace.tell(0)  # another round
    assert pace.rate() == 0.0


class Pause:
    """An event whose waits are over at once, a few times; told where it was waited for."""

    def __init__(self) -> None:
        self.waits = iter([False, False, True])
        self.seconds: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.seconds.append(seconds)
        return next(self.waits)

    def set(self) -> None:
        pass


def test_lines_go_to_standard_error_and_quiet_is_silent(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pause = Pause()
    monkeypatch.setattr("retrieval.library.progress.threading.Event", lambda: pause)
    monkeypatch.setattr("retrieval.library.progress.threading.Thread", _AtTheEnd)
    for quiet, lines in ((False, ["cairn: Reading: 1 of 3 MB (33%), 0 s so far."] * 2), (True, [])):
        with progress_bars(quiet, {"check": "Reading (MB)"}) as tell:
            tell("check", 1, 3)
        out, err = capfd.readouterr()
        assert (out, err.splitlines()) == ("", lines)
    assert pause.seconds == [EVERY] * 3 == [30.0] * 3


class _AtTheEnd:
    """A thread that runs when it is waited for."""

    def __init__(self, target: object, args: tuple[object, ...], daemon: bool) -> None:
        self._run = lambda: target(*args)  # type: ignore[operator]

    def start(self) -> None:
        pass

    def join(self) -> None:
        self._run()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Console]:
    yield Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)


def test_bars_show_units_and_what_goes_on_where_all_steps_are_done(terminal: Console) -> None:
    def shown() -> list[str]:
        """What the bars look like now."""
        drawn = Console(file=io.StringIO(), width=80, color_system=None)
        drawn.print(found[0].get_renderable())
        lines = drawn.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert all(len(line) <= 80 for line in lines)
        return lines

    found: list = []
    with pytest.MonkeyPatch.context() as patch:
        import rich.progress

        class Seen(rich.progress.Progress):
            def __init__(self, *columns: object, **options: object) -> None:
                super().__init__(*columns, auto_refresh=False, **options)  # type: ignore[arg-type]
                found.append(self)

        patch.setattr(rich.progress, "Progress", Seen)
        with bars(terminal, INDEXING) as tell:
            assert ["Working" in line for line in shown()] == [True]
            tell("extract", 1, 314)
            assert len(shown()) == 1 and "Features" in shown()[0] and "1/314 photos" in shown()[0]
            tell("extract", 314, 314)
            features, working = shown()
            assert "✓ Features" in features and "314/314 photos" in features and "Working" in working
            tell("vocabulary", 0, 4_000_000)
            tell("vocabulary", 1_000_000, 4_000_000)
            assert not any("Working" in line for line in shown())
            assert "Vocabulary" in shown()[1] and "25%" in shown()[1] and "000" not in shown()[1]
            tell("vocabulary", 4_000_000, 4_000_000)
            tell("index", 314, 314)
            assert ["Working" in line for line in shown()] == [False] * 3 + [True]  # the seal is yet to be written


def test_a_terminal_gets_bars_and_anything_else_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(**how: object) -> str:
        called: list[str] = []
        real = {name: getattr(progress, name) for name in ("bars", "lines")}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("rich.console.Console", lambda stderr: Console(file=io.StringIO(), **how))  # type: ignore[arg-type]
            for name, kept in real.items():
                patch.setattr(progress, name, lambda *given, name=name, kept=kept: called.append(name) or kept(*given))
            with progress.progress_bars(False, {}):
                pass
        return called[0]

    assert chosen(force_terminal=True, _environ={"TERM": "xterm"}) == "bars"
    assert chosen(force_terminal=False) == "lines"
    assert chosen(force_terminal=True, _environ={"TERM": "dumb"}) == "lines"


def test_indexing_tells_of_features_before_words(indexed: object, tmp_path: Path) -> None:
    """Where the vocabulary is there already too: extracting takes the time, and a batch is assigned at once."""
    from retrieval.collection.collection import Collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.indexing.add_options import AddOptions
    from retrieval.indexing.adding import index_photos

    photos = indexed.photos  # type: ignore[attr-defined]
    reported: list[tuple[str, int, int]] = []
    with Collection.create(tmp_path / "c", CollectionOptions(signature="none")) as made:
        (tmp_path / "bad.jpg").write_bytes(b"no photo")
        index_photos(
            made,
            [*sorted(photos.glob("*.jpg"))[:3], tmp_path / "bad.jpg"],
            AddOptions(vocabulary=indexed.folder),  # type: ignore[attr-defined]
            progress=lambda *step: reported.append(step),
        )
    steps = [step for step in reported if step[0] != "look"]
    assert steps[:4] == [("extract", number, 4) for number in (1, 2, 3, 4)]
    assert steps[4:] == [("index", number, 4) for number in (1, 2, 3, 4)]


def test_another_program_reads_a_line_a_step_and_the_last_one_always() -> None:
    reading, writing = os.pipe()
    now = iter(np.arange(0.0, 100.0, 0.01))
    records = ProgressWriter(INDEXING, writing, lambda: float(next(now)))
    for done in range(200):
        records.tell("extract", done, 1000)
    records.tell("look", 7, 7)
    records.end()
    os.close(writing)
    with os.fdopen(reading) as pipe:
        lines = [json.loads(line) for line in pipe]
    records.tell("look", 8, 8)  # nobody reads any more, which is no error
    extracted = [line["done"] for line in lines if line["step"] == "extract"]
    assert extracted[-1] == 199
    assert 2 < len(extracted) < 30
    assert lines[0] == {"step": "extract", "title": "Features", "done": 0, "of": 1000, "unit": "photos"}


def test_the_variable_that_asks_for_lines_is_for_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "999")
    progress_descriptor.cache_clear()
    assert progress_descriptor() == 999
    assert VARIABLE not in os.environ
    progress_descriptor.cache_clear()
    assert progress_descriptor() is None
