"""Questions about a state: they run the scheduler on a copy and never change the one they are asked of."""
