"""What browsers get: pages, media, health checks; and the address for Sume's webhooks."""
