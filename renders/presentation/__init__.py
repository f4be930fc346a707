"""How renders are entered and shown: forms, media and paging for admin, pages and API."""
