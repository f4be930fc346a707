"""`python -m tests.benchmarks.trusting CA_FILE COMMAND …`: as manage.py, trusting this file.

The client trusts who `certifi` trusts, and nobody can be added from outside.
"""

import os
import sys

import certifi


def main() -> None:
    """Trust, then run the command."""
    trusted, *command = sys.argv[1:]
    certifi.where = lambda: trusted
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *command])


if __name__ == "__main__":
    main()
