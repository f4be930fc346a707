"""How things are filled in and shown, for the admin, the pages and the API."""
