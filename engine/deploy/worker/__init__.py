"""A worker process: registers, and runs the tasks it is sent. It may import what engine/deploy may."""
