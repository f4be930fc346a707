"""Observability: the context of log lines, request ids, metrics and heartbeats."""
