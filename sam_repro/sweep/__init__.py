"""Runs what is missing of a table: several runs at once, here or on Slurm, each exactly once. Imports no torch."""
