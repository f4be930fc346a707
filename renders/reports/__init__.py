"""Figures for people and for machines."""
