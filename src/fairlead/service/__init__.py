"""The HTTP service in front of one machine."""
