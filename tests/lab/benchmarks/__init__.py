"""Measurements; each section prints a table."""
