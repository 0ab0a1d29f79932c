"""Which node an ask gets, one step of the cycle in each module."""
