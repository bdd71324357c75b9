"""Each option is declared once: every face of the program has it, with its default, its meaning and its bounds."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

import cairn as public
from eval.library.benchmark import NOT_MEASURED
from index.errors import CairnError
from index.extensions import KINDS
from index.options.declaration import Declared, build, options_of
from learning.library.choices import (
    ImproveOptions,
    LearningRunOptions,
    ModelChoices,
    PatchChoices,
    PhotoChoices,
    TuningChoices,
)
from learning.library.mining_options import MiningChoices
from learning.library.similarity_options import SimilarityPaper
from learning.similarity.options import SimilarityOptions
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.search.options import SearchOptions
from retrieval.web.search_models import HowToMatch, HowToSearch
from tests.conftest import Ran
from tests.support.command_tree import command_tree

LEARNING = (ModelChoices, PatchChoices, PhotoChoices, TuningChoices, LearningRunOptions)
MEASURED = (CollectionOptions, SearchOptions)
# Commands and functions, with what they take and leave.
COMMANDS: Mapping[str, tuple[tuple[type, ...], tuple[str, ...]]] = {
    "index": ((CollectionOptions,), ()),
    "query": ((SearchOptions,), ()),
    "retrain": ((RetrainOptions,), ()),
    "evaluate retrieval": (MEASURED, NOT_MEASURED),
    "evaluate oxford5k": (MEASURED, NOT_MEASURED),
    "mine": ((MiningChoices,), ()),
    "learn descriptor": (LEARNING, ()),
    "improve": ((ImproveOptions,), ()),
    "learn similarity": ((SimilarityOptions, SimilarityPaper), ()),
    "evaluate similarity": ((SimilarityOptions, SimilarityPaper), ()),
}
FUNCTIONS: Mapping[Callable[..., Any], tuple[tuple[type, ...], tuple[str, ...]]] = {
    public.create: ((CollectionOptions,), ()),
    public.Collection.search: ((SearchOptions,), ()),
    public.Collection.match: ((SearchOptions,), ("expand", "every_turn", "soft", "global_descriptors")),
    public.Collection.retrain: ((RetrainOptions,), ()),
    public.evaluate_retrieval: (MEASURED, NOT_MEASURED),
    public.mine: ((MiningChoices,), ()),
    public.learn_descriptor: (LEARNING, ()),
    public.learn_similarity: ((SimilarityOptions, SimilarityPaper), ()),
}
ALL = {kind for kinds, _ in (*COMMANDS.values(), *FUNCTIONS.values()) for kind in kinds}
Cairn = Callable[..., Ran]


def _taken(kinds: tuple[type, ...], leave: tuple[str, ...]) -> Iterator[Declared]:
    yield from (one for name, one in options_of(*kinds).items() if name not in leave)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_every_option_as_it_is_declared(name: str) -> None:
    command: Any = command_tree()
    for word in name.split():
        command = command.commands[word]
    shown = {one.name: one for one in command.params}
    for declared in _taken(*COMMANDS[name]):
        one, option = shown[declared.name], declared.option
        assert one.help == option.help and not one.required
        default = one.default() if callable(one.default) else one.default
        assert default == (None if declared.default == () else declared.default) or default == str(declared.default)
        flags = [*one.opts, *one.secondary_opts]
        assert f"--{declared.name.replace('_', '-')}" in flags or option.flags[0].split("/")[0] in flags


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__qualname__)
def test_a_function_has_every_option_as_it_is_declared(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    for declared in _taken(*FUNCTIONS[function]):
        assert parameters[declared.name].default == declared.default
        described = inspect.getdoc(function) or ""
        assert f"\n{declared.name} : " in described and declared.option.help in described


@pytest.mark.parametrize("model", [HowToSearch, HowToMatch])
def test_a_request_has_every_option_that_names_no_file(model: type[BaseModel]) -> None:
    of_one_match = {"expand", "every_turn", "soft", "global_descriptors"} if model is HowToMatch else set()
    for declared in _taken((SearchOptions,), ()):
        field = model.model_fields.get(declared.name)
        if declared.name == "similarity":
            assert field is not None and "similarity" in str(field.description) and field.annotation == bool | None
            continue
        if declared.name in of_one_match:
            assert field is None
            continue
        assert field is not None and (field.default, field.description) == (declared.default, declared.option.help)
        for wrong in _wrong(declared):
            with pytest.raises(ValidationError):
                model.model_validate({declared.name: wrong})


def _wrong(declared: Declared) -> Iterator[Any]:
    """Values that an option takes from nobody."""
    option = declared.option
    if declared.item in (int, float) and not declared.several:
        yield from (one for one in (option.least and option.least - 1, option.most and option.most + 1) if one)
    if declared.item is not bool:
        yield [[]]
    yield {"a": 1}


def test_what_names_an_interchangeable_part_takes_an_object_too() -> None:
    parts = [one for kind in ALL for one in options_of(kind).values() if one.name in KINDS]
    assert len(parts) > 4 and all(one.option.extends == one.name for one in parts)


@pytest.mark.parametrize("kind", sorted(ALL, key=lambda one: one.__name__), ids=lambda one: one.__name__)
def test_python_refuses_a_wrong_type_of_any_option_in_a_sentence(kind: type) -> None:
    for name, declared in options_of(kind).items():
        for wrong in _wrong(declared):
            with pytest.raises(CairnError) as reported:
                build(kind, {name: wrong})
            assert str(reported.value).endswith(".") and "\n" not in str(reported.value)


def test_a_command_refuses_what_is_out_of_bounds(cairn: Cairn) -> None:
    for name, value in (("turns", 0), ("turns", 37), ("soft", 0), ("soft", 65)):
        ran = cairn("query", "nowhere.cairn", "a.jpg", f"--{name}", value)
        assert ran.code == 2 and f"--{name}" in ran.err
