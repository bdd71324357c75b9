"""Kinds of jobs: what pages show and requests take follows from the kinds themselves."""

import typing
from pathlib import Path

import pytest

from index.errors import CairnError
from retrieval.jobs.kinds import (
    KINDS,
    PLAIN,
    Compact,
    IndexJob,
    OutsideError,
    SidecarsJob,
    UnreadableError,
    index_of,
    index_of_manifest,
    needs_nothing,
    read,
)
from retrieval.web.routes.jobs import Plain, Work


def test_what_is_told_nothing_can_be_begun_by_its_kind() -> None:
    assert {name for name in KINDS if needs_nothing(name)} == {*PLAIN, "group", "retrain"}
    assert not needs_nothing("no such kind")
    assert typing.get_args(Plain.model_fields["kind"].annotation) == PLAIN
    models = typing.get_args(Work)
    assert {name for one in models for name in typing.get_args(one.model_fields["kind"].annotation)} == KINDS.keys()


def test_kinds_say_whether_photos_are_listed_otherwise_afterwards() -> None:
    assert {name for name, one in KINDS.items() if one.changes_photos} == {"index", "remove", "metadata", "retrain"}
    assert not Compact.changes_photos


def test_films_are_taken_or_not_where_that_is_said(tmp_path: Path) -> None:
    for films, said in ((None, []), (True, ["--films"]), (False, ["--no-films"])):
        job = index_of([tmp_path], films)
        assert read("index", job.model_dump_json()) == job
        assert job.options(tmp_path, [tmp_path])[5:] == [*said, "--", str(tmp_path)]


def test_pages_of_a_manifest_are_fetched_into_the_collection_and_from_public_addresses_alone(tmp_path: Path) -> None:
    job = index_of_manifest(" https://Example.org/m ")
    assert job.about == "example.org" and read("index", job.model_dump_json()) == job
    command = job.command(tmp_path, [])
    assert command[-2:] == ["--", "https://Example.org/m"]
    assert not {"--allow-host", "--iiif-folder", "--ignore-robots"} & set(command)
    assert job.command(tmp_path, [], None, ["a", "b"])[2:] == [
        "--json",
        "--allow-host",
        "a",
        "--allow-host",
        "b",
        *command[3:],
    ]
    assert "--allow-host" not in index_of([tmp_path]).command(tmp_path, [tmp_path], None, ["a"])


def test_sidecars_are_written_below_the_folders_of_the_server_alone(tmp_path: Path) -> None:
    photos, made = tmp_path / "photos", tmp_path / "c.cairn"
    limits = ["--below", str(photos), "--below", str(made / "uploads")]
    assert SidecarsJob().command(made, [photos]) == ["metadata", str(made), "--json", "--write-sidecars", *limits]
    made.mkdir()
    (made / "uploads").symlink_to(photos)
    with pytest.raises(OutsideError):  # no limit would be none
        SidecarsJob().command(made, [])


@pytest.mark.parametrize(
    "address", ("file:///etc/passwd", "--help", "https://a:b@example.org/", "/etc/passwd", "http://")
)
def test_what_is_no_address_of_a_manifest_is_no_job(address: str) -> None:
    with pytest.raises(CairnError, match="not the address of a manifest"):
        index_of_manifest(address)
    with pytest.raises(UnreadableError):
        read("index", IndexJob.model_construct(places=[], manifests=[address]).model_dump_json())
