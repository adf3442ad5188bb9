"""``eraser-hub train``: the papers' baselines and fine-tuned encoders."""
