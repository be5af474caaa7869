"""What a release costs: curves, accountants, the ledger and the budget. Reads events, never data; no
torch."""
