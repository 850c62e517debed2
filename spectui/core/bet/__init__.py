"""The arithmetic of the bet: passes, acceptance, cost, speedup and prediction. Numbers only, no wording."""
