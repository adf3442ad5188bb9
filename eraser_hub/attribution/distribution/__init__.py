"""How far erased inputs lie from the texts that the model was trained on."""
