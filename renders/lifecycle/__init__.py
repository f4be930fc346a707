"""What happens to a render, step by step, until it is handled."""
