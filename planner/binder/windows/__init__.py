"""OVER, window functions and the windows of GROUP BY, resolved. It may import what planner/binder may."""
