"""How long rows and files are kept, and how they are pruned, erased and exported."""
