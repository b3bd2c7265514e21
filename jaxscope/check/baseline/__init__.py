"""A small committed file of what the compiler made of a program, and what has become of that since."""
