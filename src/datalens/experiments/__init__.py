"""The paper's tables, figures and claims, one module each."""
