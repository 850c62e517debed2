"""Reusable widgets; each shows one part of a snapshot and fetches nothing."""
