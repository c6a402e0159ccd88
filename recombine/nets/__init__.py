"""Pure networks: no loss, no sampling, no device, no schedule."""
