"""What a llama-server sends and accepts over HTTP."""
