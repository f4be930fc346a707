"""HTTP to Sume: what is sent, what a reply says, and how long to wait."""
