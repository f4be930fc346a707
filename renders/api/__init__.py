"""The JSON API, for people with a session and for programs with a token."""
