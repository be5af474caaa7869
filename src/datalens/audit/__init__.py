"""Attacks on our own guarantee: worst-case votes, the ledger under other eyes, canaries. Bounds, not proofs."""
