"""The Space "How good is this explanation?": scores that move when a reader marks a token."""

MODULES = (
    "eraser_agreement",
    "eraser_faithfulness",
    "quote_faithfulness",
    "annotator_agreement",
    "perturbation_map",
)
PAGE = (
    "app.py",
    "explorer_data.py",
    "explorer_model.py",
    "explorer_scores.py",
    "explorer.html",
    "explorer.css",
    "explorer.js",
)
DATA = ("samples.json", "model.json")  # `python -m tools.explorer` writes them
PICTURE = "explorer.png"  # of the card; `make pictures` writes it
