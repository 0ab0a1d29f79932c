"""The acts: what changes several books together, and says what became so. They choose nothing."""
