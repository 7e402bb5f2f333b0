"""Plankeeper beside its peers: the same participants, the same requests, one machine, one run."""
