"""What learns, as functions of `import cairn`; the commands call the same."""
