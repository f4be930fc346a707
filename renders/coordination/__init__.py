"""State that processes share in Redis: leases, and the sorted set of due reads."""
