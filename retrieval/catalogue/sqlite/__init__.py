"""What is looked at in a catalogue that is an SQLite file, before anything in it is used."""
