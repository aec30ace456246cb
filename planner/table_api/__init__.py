"""The fluent API, which builds the same logical plans. In planner it may import binder and the layers
below.
"""
