"""The papers' networks, their inputs, and the models of ``explain`` over them."""
