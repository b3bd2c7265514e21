"""What can be said about a run: plain data, no behaviour, no other room of jaxscope."""
