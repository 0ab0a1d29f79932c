"""The books: what is so, each fact in one place. They change nothing but themselves."""
