"""What a key does: from the screens to sessions and experiments."""
