"""Language models that answer in words: prompts, a client, and quotes brought back to the tokens they stand for."""
