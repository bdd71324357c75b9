"""Compiling all functions tells how far it is."""

from retrieval.library.compiled import COMPILED, compile_all


def test_who_compiles_all_is_told_of_each_module() -> None:
    reported: list[tuple[str, int, int]] = []
    compile_all(lambda *step: reported.append(step))
    assert reported == [("compile", done, len(COMPILED)) for done in range(len(COMPILED) + 1)]
