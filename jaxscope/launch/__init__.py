"""Starting a program under observation, and staying with it to its end. What it records is capture's business."""
