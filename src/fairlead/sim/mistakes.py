"""Mistakes: what is wrong with what was given, as one sentence.

Decides the words for a file that cannot be read or written; other mistakes have words of their own.
"""

from __future__ import annotations


def sentence(mistake: Exception) -> str:
    """The sentence: of a file its name and what the system says about it, without its number."""
    if not isinstance(mistake, OSError) or not mistake.strerror:
        return str(mistake)
    what = mistake.strerror.lower()
    if mistake.filename is None:
        return what
    name = mistake.filename.decode(errors="replace") if isinstance(mistake.filename, bytes) else str(mistake.filename)
    return f"{name or 'an empty name'}: cannot be opened: {what}"
