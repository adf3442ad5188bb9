"""Games: the units of a text are players, and a set of them that stays in the input is worth the model's probability."""
