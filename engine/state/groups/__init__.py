"""State of groups: of a GROUP BY, a window, a session or a Top-N. It may import what engine/state may."""
