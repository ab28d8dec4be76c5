"""What was claimed and how it compares. Imports no torch."""
