"""A module that can't be imported."""

Thing = 1 / 0
