"""Numbers and images into tables, figures and pages; knows nothing of how they were made."""
