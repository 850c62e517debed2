"""What outlives a run: profiles, remembered baselines and the folders they lie in."""
