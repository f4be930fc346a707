"""The files of finished renders: downloaded, recognized and stored."""
