"""Channels, input gates, record writers and channel state: rows from task to task. In engine it may
import storage and kernels and the layers below.
"""
