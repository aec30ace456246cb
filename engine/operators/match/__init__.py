"""The operator of MATCH_RECOGNIZE and its NFA search. It may import what engine/operators may."""
