"""Path of the project, for tests that start its programs."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
