"""Summary of a run by `cairn reproduce`: table by table, as units differ."""

from typing import Any

from eval.commands.reproduce import _summary


def table(title: str, unit: str, *differences: float | None) -> dict[str, Any]:
    return {"title": title, "unit": unit, "cells": [{"difference": one} for one in differences]}


def test_units_are_not_mixed() -> None:
    tables = [table("Time", "Hours", 2.0, -4.0, 3.0), table("Unknowns", "Thousands", None, -500.0), table("Own", "m")]
    assert _summary({"scale": 1.0, "tables": tables}) == [
        "Time: 3 published numbers, ours off by 3 in the median (Hours)",
        "Unknowns: 1 published number, ours off by 500 in the median (Thousands)",
    ]
    assert _summary({"scale": 1.0, "tables": []}) == ["No number was published that ours can be compared with."]
    assert _summary({"scale": 0.1, "tables": tables})[0].startswith("Run at the scale 0.1")
