"""The physical plan: operator specs, chains, the job graph and stable operator ids. In planner it may import
binder and the layers below.
"""
