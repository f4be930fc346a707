"""The steps of a render, from the claim until it is handled."""
