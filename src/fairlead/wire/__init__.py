"""One typed shape for each resource and request: what travels between service, client and command line.

Decides names and types, and which values a request may have. Never knows about books, processes or HTTP. Invariant:
imports msgspec and the standard library alone, so that a command which decodes with it starts at once.
"""
