"""Pictures and pages of learnt models."""
