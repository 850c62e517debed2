"""What a llama-server writes to its log."""
