"""Results as JSON, tables, files for other programs, and lines for people."""
