"""The folder of a study: tables, figures and what they were made of."""
