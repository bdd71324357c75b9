"""Deprecated names and arguments: they work, warn at the caller's line, and say when they will go."""

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from index.deprecation import Deprecation, deprecated, renamed_argument


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Deprecation]]:
    found: list[Deprecation] = []
    monkeypatch.setattr("index.deprecation.DEPRECATIONS", found)
    yield found


def _warned(call: Callable[[], Any]) -> tuple[Any, str]:
    """What a call gives, and its one warning, which must be blamed on this line of this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    (warning,) = caught
    assert warning.category is DeprecationWarning
    code = call.__code__  # type: ignore[attr-defined]
    assert (warning.filename, warning.lineno) == (code.co_filename, code.co_firstlineno)
    return result, str(warning.message)


def test_a_function_still_works_and_warns_its_caller(registry: list[Deprecation]) -> None:
    @deprecated("0.2", instead="cairn.detect()")
    def regions(image: int, *, most: int = 3) -> int:
        """Detect regions.

        Those that are strong.
        """
        return image + most

    result, message = _warned(lambda: regions(1, most=4))
    assert result == 5
    assert message.endswith(
        "regions() is deprecated since Cairn 0.2 and will be removed in 0.3: use cairn.detect() instead."
    )
    assert list(inspect.signature(regions).parameters) == ["image", "most"]
    assert inspect.getdoc(regions) == (
        "Detect regions.\n\n.. deprecated:: 0.2\n   It will be removed in 0.3: use cairn.detect() instead.\n\n"
        "Those that are strong."
    )
    assert [one.removed_in for one in registry] == ["0.3"]


def test_a_class_and_a_method_warn_their_callers() -> None:
    @deprecated("0.9.1", instead="Newer")
    class Old:
        """What was."""

        def __init__(self, value: int) -> None:
            self.value = value

        @deprecated("0.2", instead="value")
        def get(self) -> int:
            return self.value

    made, message = _warned(lambda: Old(7))
    assert isinstance(made, Old) and "removed in 0.10: use Newer" in message
    assert _warned(lambda: made.get())[0] == 7
    assert ".. deprecated:: 0.9.1" in (Old.__doc__ or "")


def test_an_argument_is_taken_by_its_old_name_too() -> None:
    @renamed_argument("k", "top", since="0.2")
    def search(photo: str, *, top: int = 20) -> tuple[str, int]:
        return photo, top

    old: Any = search
    result, message = _warned(lambda: old("a", k=5))
    assert result == ("a", 5)
    assert message.endswith("and will be removed in 0.3: use 'top' instead.")
    assert message.startswith("the argument 'k' of ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert search("a", top=5) == ("a", 5)
        with pytest.raises(TypeError, match=r"'top' twice"):
            old("a", k=5, top=5)
    with pytest.raises(TypeError, match="has no argument 'most'"):
        renamed_argument("k", "most", since="0.2")(search)


@pytest.mark.parametrize(
    ("version", "due"), [("0.2.0", False), ("0.2.7", False), ("0.3.dev1", True), ("0.3.0", True), ("1.0", True)]
)
def test_what_is_deprecated_is_due_with_the_next_minor_version(version: str, due: bool) -> None:
    assert Deprecation("cairn.old()", "0.2.1", "cairn.new()").is_due(version) is due
