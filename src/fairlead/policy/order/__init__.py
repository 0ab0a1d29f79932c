"""Which ask is looked at next, and which running work would be stopped first."""
