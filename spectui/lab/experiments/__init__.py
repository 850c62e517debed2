"""Experiments: measurements in an order, over several servers or settings."""
