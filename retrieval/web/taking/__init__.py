"""What visitors take away: files of photos, and sheets of small pictures."""
