"""What of the books is state: for every class, which attributes are written down and which are made again.

Decides nothing and knows no class: lists of names, which a test holds against the classes. Invariant: every attribute
of every book is in exactly one list.
"""

from __future__ import annotations

# For each class: attributes written as they are, and those that are made again (or written in a form of their own).
ASK_STATE = (
    "priority",
    "seq",
    "created_ms",
    "pending",
    "allocated_ms",
    "preempt_triggered",
    "preempt_checked_ms",
    "attempted",
    "scale_up_reported",
    "stood_in_ms",
    "overdue",
    "checkpoint_ms",
    "started_at",
    "guaranteed_at",
)
ASK_OTHER = frozenset(
    {
        "app",
        "spec",
        "key",
        "items",
        "shape",
        "batch",
        "node",
        "evict_cause",
        "evicted_by",
        "evicted_for",
        "line_key",
        "nomination",
        "reserved_on",
        "replaces",
        "bound_for",
        "watches",
    }
)
APP_STATE = (
    "seq",
    "submitted_ms",
    "submitted_seq",
    "start_ms",
    "finished_ms",
    "message",
    "backoff_until_ms",
    "unschedulable",
    "placeholder_timeout_ms",
    "placeholder_due_ms",
    "closing",
    "limit_group",
    "tracked",
)
APP_OTHER = frozenset(
    {
        "id",
        "spec",
        "queue",
        "state",
        "state_log",
        "rejected",
        "asks",
        "consumed",
        "batches",
        "pending",
        "pending_count",
        "allocated",
        "placeholders",
        "allocations",
        "allowance",
        "placeholder_count",
        "groups",
        "swapping",
        "priority",
        "order_key",
        "stamp",
        "out_of_line",
        "by_priority",
        "retried",
        "touched",
        "awaited_by",
        "gives_way_to",
    }
)
GROUP_STATE = ("name", "count", "replaced", "timed_out")
QUEUE_STATE = ("seq", "is_leaf", "managed", "max_applications", "admin_acl", "submit_acl", "running", "quota_due_ms")
QUEUE_BOOKS = ("max", "guaranteed", "allocated", "pending", "preempting")
QUEUE_OTHER = frozenset(
    {
        "name",
        "parent",
        "path",
        "state",
        "children",
        "applications",
        "lineage",
        "properties",
        "template",
        "allocating_accepted",
        "by_rank",
        "owes",
        "promised",
        "priority_counts",
        "raw_priority",
        "reported",
        "demands",
        "ready",
        "full",
        "due",
        "due_below",
        "waiting",
        "gated",
        "reserved",
        "heap",
        "apps_heap",
        "resting",
        "changed_children",
        "changed_apps",
        "changed_leaves",
        "stamp",
        "stamps",
        "touched",
        "share_terms",
    }
)
NODE_BOOKS = ("total", "allocated", "occupied")
NODE_OTHER = frozenset(
    {
        "id",
        "spec",
        "seq",
        "attributes",
        "labels",
        "keeps_away",
        "schedulable",
        "available",
        "free",
        "held",
        "allocations",
        "foreign",
        "foreign_notes",
        "reservations",
        "score_terms",
        "weight_sum",
        "stamp",
        "changed",
        "row",
        "row_stale",
    }
)
PARTITION_STATE = (
    "draining",
    "clean_due_ms",
    "reservations",
    "allocation_count",
    "released_count",
    "books_version",
    "tightened",
    "news",
)
PARTITION_OTHER = frozenset(
    {
        "admission",
        "spec",
        "root",
        "timers",
        "out",
        "next_seq",
        "now_ms",
        "nodes",
        "applications",
        "ended",
        "rejected",
        "shapes",
        "trackers",
        "unseen",
        "nominations",
        "uncounted",
        "counted_at",
        "rested_at",
        "disruption",
        "retries",
        "idle",
        "reserving",
        "swappable",
        "homeless",
        "homeless_at",
        "shares_stale",
        "keeps_history",
    }
)
