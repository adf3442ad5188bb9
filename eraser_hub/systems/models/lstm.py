"""The LSTM of Wang et al. (2022)."""

from eraser_hub.systems.hyper import NetworkHyper
from eraser_hub.systems.system import NetworkSystem


class LstmSystem(NetworkSystem):
    """An LSTM for each text, its last states through a layer whose product with each state is the attention."""

    hyper = NetworkHyper(hidden_size=300, dropout=0.0, batch_size=64, epochs=10, patience=3, clip=5.0)
    network = "eraser_hub.systems.networks.classifiers:LstmClassifier"
    reads_apart = True
