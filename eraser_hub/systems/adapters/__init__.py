"""How the papers' systems are opened, one kind a module."""
