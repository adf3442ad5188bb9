"""The system of Lei et al. (2016), as DeYoung et al. (2020) train it without rationales."""

from eraser_hub.systems.models.lei import LeiHyper, LeiSystem


class UnsupervisedLeiSystem(LeiSystem):
    """A generator of masks and an encoder of the selected tokens, trained by labels alone."""

    hyper = LeiHyper(supervision=0.0)
    needs = ()
