"""Keep what the compiler made of a program in a small committed file, and compare later runs with it."""
