"""A run: pytest with our plugin, the session within it, and the processes in which implementations are run."""
