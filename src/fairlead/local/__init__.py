"""Work as processes on this machine."""
