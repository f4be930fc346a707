"""How fast it is: measured on real servers, printed, never asserted."""
