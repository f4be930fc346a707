"""What is reported about the work: log lines, counts, signs of life."""
