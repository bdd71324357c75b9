"""The public interface of `import cairn`: collections, searches and their results."""
