"""The Prometheus endpoint and the search for bottlenecks. In client it imports no other folder."""
