"""A copy of an installation that is consistent while people answer, and the way back."""
