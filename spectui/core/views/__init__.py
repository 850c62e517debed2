"""What a screen shows, as immutable values."""
