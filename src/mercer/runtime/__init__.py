"""What the library needs of the machine: settings, memory, threads, clocks, files, compiled code."""
