"""The three schedulers: when the next step of a render runs, and in which process."""
