"""Classifying images."""
