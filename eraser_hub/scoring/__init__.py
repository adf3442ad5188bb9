"""From prediction files and corpus folders to scores: what ``eraser-hub score`` and ``compare`` run."""
