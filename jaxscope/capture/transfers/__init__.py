"""Count copies between the host and devices, by the line of the program that causes each copy."""
