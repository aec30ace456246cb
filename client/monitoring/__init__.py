"""The facts that operators watch: of jobs, their operators, splits, checkpoints and failures."""
