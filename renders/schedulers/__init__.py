"""Who takes the next step, and when: three ways."""
