"""Model files: their facts, vocabularies, and derived files."""
