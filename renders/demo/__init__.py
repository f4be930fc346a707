"""What `manage.py demo` starts on a machine without servers: the processes, and what they need."""
