"""The prompts that are sent."""
