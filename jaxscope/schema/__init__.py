"""The data types of a recording: plain data without behaviour. Imports no other package of jaxscope."""
