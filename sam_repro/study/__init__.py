"""Measurements: on saved checkpoints, and of the code itself."""
