"""Faults for `megalith supervise --local`, and what came of them."""
