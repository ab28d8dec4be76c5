"""What can be said: the schema, its rules, budgets, composing and the identity of a run. Imports no torch."""
