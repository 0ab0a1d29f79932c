"""Virtual time: scenarios, traces, benchmarks. Callers of the one scheduler, never a second model of it."""
