"""Cases: golden ones read, random ones drawn and shrunk, and whether a case can tell right from wrong."""
