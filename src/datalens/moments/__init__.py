"""What is measured of each class in two noisy sums, and the normal law that follows from them."""
