"""A service that answers as a test says."""

from testbed.answering import answer, client, refuse, service, socket_path

__all__ = ["answer", "client", "refuse", "service", "socket_path"]
