"""The LSTM of Carton et al. (2020)."""

from eraser_hub.systems.hyper import NetworkHyper
from eraser_hub.systems.system import NetworkSystem


class BilstmSystem(NetworkSystem):
    """A bidirectional LSTM, classified by its last states."""

    hyper = NetworkHyper(hidden_size=200, dropout=0.0, epochs=10, patience=0)
    network = "eraser_hub.systems.networks.classifiers:LastStateClassifier"
