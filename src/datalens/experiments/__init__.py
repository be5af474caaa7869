"""The paper's tables and figures, each by one command, sharing one results store."""
