"""One measurement on one server: traffic, a run, a baseline, a probe, and their verdict."""
