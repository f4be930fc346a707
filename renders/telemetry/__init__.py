"""What is told about the work: log lines, counts, signs of life."""
