"""One job: master, state, restarts, evolution, metrics."""
