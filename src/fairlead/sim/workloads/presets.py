"""Recipes by name, ready to use and to copy from.

Decides what `poisson`, `diurnal`, `heavy-tails`, `gangs` and `tenants` mean. Never draws. Invariant: each is a whole
recipe, as a file could hold it.
"""

from __future__ import annotations

_NODES = "nodes: {count: 100, each: {vcore: 32, memory: 128Gi}}\n"
_GPU_NODES = "nodes: {count: 50, each: {vcore: 64, memory: 512Gi, nvidia.com/gpu: 8}}\n"

PRESETS: dict[str, str] = {
    "poisson": """\
# Small tasks of two users at a steady rate; run times exponential.
tasks: 10000
"""
    + _NODES
    + """\
arrivals: {load: 0.9}
tenants:
  - {user: ann, queue: root.a, run: {kind: exponential, median: 10m}, sizes: [{vcore: 2, memory: 8Gi}]}
  - {user: bob, queue: root.b, run: {kind: exponential, median: 10m}, sizes: [{vcore: 4, memory: 8Gi}]}
""",
    "diurnal": """\
# People submit by day, a batch user all the time; nights are quiet.
lasts: 7d
"""
    + _NODES
    + """\
arrivals: {load: 0.8, swing: 0.9, peak_hour: 14}
tenants:
  - {user: day, queue: root.interactive, weight: 3, priority: 10, run: {median: 20m}, sizes: [{vcore: 4, memory: 16Gi}]}
  - {user: batch, queue: root.batch, run: {median: 2h}, tasks: 20, sizes: [{vcore: 8, memory: 16Gi}]}
""",
    "heavy-tails": """\
# Most tasks are short and small; a few run for a day and ask for half a node.
tasks: 20000
"""
    + _NODES
    + """\
arrivals: {load: 0.9}
tenants:
  - user: ann
    queue: root.short
    weight: 5
    run: {kind: pareto, median: 5m, spread: 1.3, longest: 12h}
    tasks: 4
    sizes: [{vcore: 1, memory: 2Gi, weight: 8}, {vcore: 4, memory: 16Gi, weight: 2}]
  - user: bob
    queue: root.long
    run: {kind: pareto, median: 1h, spread: 1.2, longest: 1d}
    sizes: [{vcore: 4, memory: 8Gi, weight: 6}, {vcore: 16, memory: 64Gi, weight: 1}]
""",
    "gangs": """\
# Training jobs that start together or not at all, beside single tasks.
tasks: 5000
"""
    + _GPU_NODES
    + """\
arrivals: {load: 0.8}
tenants:
  - user: train
    queue: root.train
    gangs: 1
    tasks: 8
    tasks_max: 32
    run: {median: 3h, spread: 1.2, longest: 3d}
    sizes: [{vcore: 8, memory: 64Gi, nvidia.com/gpu: 1}]
  - user: notebook
    queue: root.notebooks
    weight: 4
    priority: 10
    run: {median: 30m}
    sizes: [{vcore: 4, memory: 16Gi, nvidia.com/gpu: 1}]
""",
    "tenants": """\
# Five teams of different size and taste share a cluster.
lasts: 7d
"""
    + _NODES
    + """\
arrivals: {load: 0.9, swing: 0.5}
tenants:
  - {user: search, queue: root.search, weight: 8, priority: 20, run: {median: 2m}, sizes: [{vcore: 2, memory: 4Gi}]}
  - {user: ads, queue: root.ads, weight: 4, priority: 10, tasks: 5, sizes: [{vcore: 4, memory: 16Gi}]}
  - user: ml
    queue: root.ml
    weight: 2
    run: {median: 2h, spread: 1.3}
    tasks: 4
    gangs: 0.5
    sizes: [{vcore: 8, memory: 32Gi}]
  - {user: etl, queue: root.etl, weight: 1, run: {median: 30m}, tasks: 40, sizes: [{vcore: 1, memory: 8Gi}]}
  - user: student
    queue: root.student
    weight: 2
    run: {kind: pareto, median: 5m, spread: 1.2, longest: 1d}
    sizes: [{vcore: 1, memory: 2Gi}]
""",
}
"""By name, the YAML text."""
