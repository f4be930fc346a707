"""What the commands share: arguments, output, following renders, Ctrl-C."""
