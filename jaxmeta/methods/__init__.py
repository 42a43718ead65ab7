"""What the paper compares with: methods by name."""
