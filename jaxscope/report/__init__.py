"""A run for people and for machines. Nothing from the program under study is ever markup or control code."""
