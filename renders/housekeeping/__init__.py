"""What is kept and for how long, what is deleted, erased and exported."""
