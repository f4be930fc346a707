"""The files of finished renders: fetched, recognized and stored."""
