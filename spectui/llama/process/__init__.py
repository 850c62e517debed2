"""A llama-server process: started, watched, read and ended."""
