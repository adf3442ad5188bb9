"""The LSTM of DeYoung et al. (2020) over word embeddings."""

from eraser_hub.systems.hyper import NetworkHyper
from eraser_hub.systems.system import NetworkSystem


class GloveLstmSystem(NetworkSystem):
    """Word embeddings, a bidirectional LSTM, additive attention."""

    hyper = NetworkHyper(learning_rate=1e-2)
    network = "eraser_hub.systems.networks.classifiers:AdditiveClassifier"
