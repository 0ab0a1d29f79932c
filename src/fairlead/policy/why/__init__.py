"""Why an ask waits."""
