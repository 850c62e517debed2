"""spectui: a terminal dashboard that measures, explains and tunes speculative decoding on llama.cpp servers."""

__version__ = "0.2.0"
