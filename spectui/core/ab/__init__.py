"""Two configurations compared: the ratio, its interim looks, and whether both wrote the same."""
