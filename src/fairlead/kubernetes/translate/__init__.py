"""From Kubernetes' words to the core's, and back; pure functions.

Decides what a pod, a node, a class or a budget means. Never sends anything, and keeps nothing.
"""
