"""Random cases, drawn and shrunk, and whether a case can tell right from wrong."""
