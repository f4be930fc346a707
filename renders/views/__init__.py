"""What a browser gets."""
