"""One file a statement family, and the dispatch."""
