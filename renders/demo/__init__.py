"""What `manage.py demo` starts on a bare machine, and how a terminal follows renders."""
