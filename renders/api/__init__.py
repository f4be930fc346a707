"""The JSON API, for users with a session and for programs with a token."""
