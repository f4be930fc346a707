"""May it be sent now? Plan, turns and budgets decide; `lifecycle.claims` combines them."""
