"""The order of rules, the placement of exchanges and the checks of a streaming plan. It may import
planner and catalog.
"""
