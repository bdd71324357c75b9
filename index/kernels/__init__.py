"""Loops that array operations cannot express, compiled to machine code."""
