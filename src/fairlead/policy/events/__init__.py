"""What an event, a timer or a restart means for the books."""
