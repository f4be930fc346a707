"""Figures about renders, costs and limits, for people and for machines."""
