"""Checks of a catalogue that is an SQLite file, before anything in it is used."""
