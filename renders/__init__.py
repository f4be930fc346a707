"""Submits paid render jobs to Sume exactly once, and brings the results back."""

__version__ = "0.2.0"
