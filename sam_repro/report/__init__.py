"""Claims beside measurements: the published tables as data, what they need, what the ledger holds. Imports no torch."""
