"""A bounded sum, noise and post-processing: the only places where private numbers become public ones."""
