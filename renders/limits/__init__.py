"""Whether and in which order renders are sent: the plan's limits, turns and budgets."""
