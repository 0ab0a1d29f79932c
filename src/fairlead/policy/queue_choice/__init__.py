"""Which queue takes an application, and what user may submit to it."""
