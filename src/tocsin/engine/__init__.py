"""The running loops, each with start and stop."""
