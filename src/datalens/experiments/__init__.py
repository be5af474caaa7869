"""The paper's tables, figures and claims, each by one command, sharing one results store."""
