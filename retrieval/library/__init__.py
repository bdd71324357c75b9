"""What `import cairn` gives: collections, searches and their results."""
