"""The job master's side: launches, registers and watches worker processes. It may import what
engine/deploy may.
"""
