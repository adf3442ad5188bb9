"""Hostile input for every verb and module, judged by the input policy alone: ``python -m tests.attack --help``."""

import os

# before any import of datasets, evaluate or transformers: nothing may ask a hub; one thread, for workers are forked
for _name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
