"""Template tags and filters for showing renders."""
