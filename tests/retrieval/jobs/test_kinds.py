"""Kinds of jobs: what pages and requests are told of them follows from the kinds themselves."""

import typing

from retrieval.jobs.kinds import KINDS, PLAIN, Compact, needs_nothing
from retrieval.web.routes.jobs import Asked, Plain


def test_what_is_told_nothing_can_be_begun_by_its_kind() -> None:
    assert {name for name in KINDS if needs_nothing(name)} == {*PLAIN, "group", "retrain"}
    assert not needs_nothing("no such kind")
    assert typing.get_args(Plain.model_fields["kind"].annotation) == PLAIN
    models = typing.get_args(typing.get_args(Asked)[0])
    assert {name for one in models for name in typing.get_args(one.model_fields["kind"].annotation)} == KINDS.keys()


def test_kinds_say_whether_photos_are_listed_otherwise_afterwards() -> None:
    assert {name for name, one in KINDS.items() if one.changes_photos} == {"index", "remove", "metadata", "retrain"}
    assert not Compact.changes_photos
