"""A session of the dashboard: one server, its traffic, its baseline and what is staged."""
