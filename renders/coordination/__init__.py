"""What is shared between processes in Redis: leases, and the set of what is due."""
