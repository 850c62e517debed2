"""The commands: arguments in, experiments run, text or JSON out."""
