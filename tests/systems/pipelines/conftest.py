"""Networks on one thread, as beside."""

from ..networks.conftest import one_thread  # noqa: F401
