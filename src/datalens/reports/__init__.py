"""Numbers and images into figures; knows nothing of how they were made."""
