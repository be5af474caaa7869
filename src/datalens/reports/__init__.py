"""Numbers and images into tables and figures; knows nothing of how they were made."""
