"""Runs physical plans: operators, state, tasks, jobs and checkpoints. It may import planner and catalog."""
