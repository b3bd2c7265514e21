"""Make the contents of the screens as plain data: neither making nor testing it needs a terminal library."""
