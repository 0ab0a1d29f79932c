"""The pages for browsers: a client of the service that runs in a process of its own (docs/pages.md)."""
