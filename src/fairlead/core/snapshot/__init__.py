"""The whole state written down, and made again."""
