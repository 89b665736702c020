"""The operating system and this process: files, streams, threads, signals, children, exit codes."""
