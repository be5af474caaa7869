"""The systems that DataLens is compared with: each owns its loop, and all share budget, ledger and evaluation."""
