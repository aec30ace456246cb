"""Counters and histograms of tasks and operators. In engine it imports no other folder."""
