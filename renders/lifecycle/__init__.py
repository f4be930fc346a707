"""What happens to a render, step by step, until its result is stored and its signals are sent."""
