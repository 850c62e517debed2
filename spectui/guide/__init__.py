"""The guide: short pages in Markdown about what the program does, and how to read what it says."""
