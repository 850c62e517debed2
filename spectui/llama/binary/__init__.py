"""A llama-server binary: where it is, what it can do, and its command line."""
