"""Pictures and pages of what was learnt."""
