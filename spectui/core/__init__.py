"""Pure numbers and models: no I/O, no clock, no event loop, so every rule here is tested by values alone."""
