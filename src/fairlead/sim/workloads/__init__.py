"""Workloads: where jobs come from. Each module reads or makes one kind; `sim.sources` chooses among them."""
