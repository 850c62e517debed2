"""A sweep as values: its grid, what to measure next, predictions and the recommendation."""
