"""A scheduler inside a Python program: see `fairlead.library.service` and docs/library.md."""
