"""Parts of a report's page that answer a reader's first questions: findings, forest plot, definitions of scores."""
