"""What the screens show, as plain data: no terminal library is needed to make it or to test it."""
