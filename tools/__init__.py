"""What the project's own work needs and no user does; it runs from the repository's root and is not in the wheel."""
