"""Devices by dynamic resource allocation: claims, and which devices of which slices they get.

Nothing here is imported or asked before a cluster has claims; see `docs/kubernetes.md`.
"""
