"""Benches of start-up, the prompt, the first row and the first hour."""
