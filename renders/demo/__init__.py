"""What `manage.py demo` starts on a bare machine: the processes, and what they need."""
