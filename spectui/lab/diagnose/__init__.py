"""What can be said of a command, a log, a profile or a file without measuring."""
