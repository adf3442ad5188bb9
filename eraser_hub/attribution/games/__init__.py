"""Games: the units of a text are players, and a set that stays in the input is worth the model's probability."""
