"""Sentences with placeholders, on the command line, for Python programs and in another language."""

import json
import pickle

import pytest

from index.errors import CairnError, Damaged, DatabaseError
from index.messages import Message, in_python, on_command_line, speaking
from retrieval.catalogue.schema import ForeignValue

SENTENCE = "{--share} goes with {--gt|labels} alone, not with {path}: run {cairn check}, then {cairn repair}."


def test_options_and_commands_are_named_as_the_reader_writes_them() -> None:
    error = CairnError(SENTENCE, path="/a/{b}")
    typed = "--share goes with --gt alone, not with /a/{b}: run cairn check, then cairn repair."
    assert error.message.sentence(on_command_line) == typed
    called = "share goes with labels alone, not with /a/{b}: run Collection.check, then cairn repair."
    assert str(error) == called == error.message.sentence(in_python)
    with speaking(on_command_line):
        assert str(error) == typed
    assert str(error) == called


@pytest.mark.parametrize(
    ("place", "argument"),
    [
        *[("--max-side", "max_side"), ("--no-judge", "judge"), ("--upright/--rotated", "upright")],
        *[("--gt|truth", "truth"), ("cairn retrain --signature", "Collection.retrain(signature=…)")],
        *[("cairn index --words --max-side", "Collection.add(words=…, max_side=…)")],
        *[("cairn repair --drop-missing", "cairn repair --drop-missing"), ("cairn check", "Collection.check")],
    ],
)
def test_an_option_is_an_argument_in_python(place: str, argument: str) -> None:
    assert in_python(place) == argument


def test_a_sentence_that_is_put_together_stays_as_it_is() -> None:
    assert str(CairnError("a {b} {c} {} %s {d!r}")) == "a {b} {c} {} %s {d!r}"
    assert str(CairnError()) == ""


def test_a_value_may_look_like_a_place() -> None:
    message = Message("{first} and {second}", first="{second}", second="{--share} {cairn check}")
    assert str(message) == "{second} and {--share} {cairn check}"


def test_an_error_within_a_sentence_is_told_in_the_same_way() -> None:
    inner = CairnError("give {--max-side}")
    assert Message("no: {reason}", reason=inner).sentence(on_command_line) == "no: give --max-side"
    assert Message("no: {reason}", reason=inner.message).sentence(in_python) == "no: give max_side"
    german = {"no: {reason}": "nein: {reason}", "give {--max-side}": "geben Sie {--max-side} an"}
    reported = Message("no: {reason}", reason=inner).sentence(on_command_line, lambda text: german[text])
    assert reported == "nein: geben Sie --max-side an"


@pytest.mark.parametrize("values", [{"a": 1}, {"path": 1, "a": 2}, {"pat": 1}])
def test_values_are_those_of_the_places(values: dict[str, int]) -> None:
    with pytest.raises(TypeError, match="are not those of the message"):
        Message(SENTENCE, **values)


def test_a_message_survives_other_processes() -> None:
    error = Damaged(Message(SENTENCE, path=CairnError("{--gt} {n}", n=3)))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is Damaged and str(again) == str(error)
    message = Message.from_dict(json.loads(json.dumps(error.message.to_dict())))
    assert message.sentence(on_command_line) == error.message.sentence(on_command_line)
    assert message.sentence(in_python) == str(error)


def test_an_error_survives_them_whatever_it_is_made_with() -> None:
    for error in (ForeignValue("x" * 99, "a number"), DatabaseError("The database {name} fails.", "disk", name="d")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
