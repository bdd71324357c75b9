"""What measures, as functions of `import cairn`; the commands call the same."""
