"""Loops that whole-array operations cannot say, compiled to machine code."""
