"""One job: master, state machine, restarts, rescaling, query evolution and metrics. In engine it may
import deploy and the layers below.
"""
