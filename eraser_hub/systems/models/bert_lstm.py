"""The LSTM of DeYoung et al. (2020) over an encoder's states."""

from eraser_hub.systems.hyper import NetworkHyper
from eraser_hub.systems.system import NetworkSystem


class BertLstmSystem(NetworkSystem):
    """An encoder, a bidirectional LSTM, additive attention."""

    hyper = NetworkHyper(learning_rate=2e-5)
    encoder = "required"
    network = "eraser_hub.systems.networks.classifiers:AdditiveClassifier"
