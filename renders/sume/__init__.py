"""Sume's HTTP API: requests, replies, and how long to wait."""
