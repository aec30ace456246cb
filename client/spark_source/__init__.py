"""penstock as a data source of Spark. In client it may import cursor and script_check and the layers
below.
"""
