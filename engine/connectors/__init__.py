"""The registry of sources and sinks, and the small connectors. In engine it may import network and
functions and formats and the layers below.
"""
