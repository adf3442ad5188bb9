"""The loading scripts: one builder per Hub dataset, and its card."""
