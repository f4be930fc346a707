"""A shop that sells pictures: the code of a project that uses Renders, as README shows it."""
