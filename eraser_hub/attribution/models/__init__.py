"""Models that are not networks: scikit-learn pipelines."""
