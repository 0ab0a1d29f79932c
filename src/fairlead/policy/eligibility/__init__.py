"""Whether an ask may be tried now, before any node is looked at."""
