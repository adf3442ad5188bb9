"""Language models that answer in words: prompts, a client, and the alignment of quotes with tokens."""
