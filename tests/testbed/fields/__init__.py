"""For each field that is obeyed a small part of a cluster, with it and without it."""
