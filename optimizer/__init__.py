"""Order of rules, placement of exchanges, validation."""
