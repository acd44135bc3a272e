"""A referee that is not us: whole numbers and fractions, written from the documentation, nothing of cosim."""
