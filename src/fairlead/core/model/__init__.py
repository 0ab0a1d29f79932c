"""Values: amounts, specs, events, decisions, reasons. They know of no book."""
