"""Functions of dates, times and intervals. It may import what engine/expressions may."""
