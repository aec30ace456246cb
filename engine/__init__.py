"""Runs physical plans: elements, operators, state, tasks, jobs, checkpoints."""
