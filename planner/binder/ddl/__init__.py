"""CREATE, ALTER and INSERT, resolved. It may import what planner/binder may."""
