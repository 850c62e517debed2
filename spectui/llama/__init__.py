"""Everything known about llama.cpp from outside: its flags, processes, HTTP answers, metrics and log lines."""
