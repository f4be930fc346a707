"""What a browser gets: pages, files, probes; and where Sume sends its webhooks."""
