"""The paper's convergence bound (Theorem 6) as printed and as corrected; reads numbers, never a run."""
