"""Ratios against the alternatives, each with its bar."""
