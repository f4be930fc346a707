"""What the commands share: arguments, output, Ctrl-C."""
