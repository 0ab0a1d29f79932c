"""Which running work is stopped so that other work can run."""
