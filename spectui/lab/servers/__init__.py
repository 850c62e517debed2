"""Servers to experiment on: started or attached to, their models, memory and machine."""
