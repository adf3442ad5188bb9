"""From raw files to checked records, to Hub-ready folders, to the Hub."""
