"""May it be sent now? The plan, the turns and the budgets decide."""
