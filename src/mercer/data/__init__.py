"""The door for data: points, labels and columns, checked once, and what they ask of each other."""
