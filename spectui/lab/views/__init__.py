"""Sessions and experiments as the values that screens show."""
