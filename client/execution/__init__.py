"""From a parsed query to its job: session state, query pipeline, job submission. Knows no statement."""
