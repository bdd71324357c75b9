"""The synthetic benchmark and the demonstration."""
