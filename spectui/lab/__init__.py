"""Experiments on servers: traffic, measurement and restarts. Asynchronous, and unaware of any screen."""
