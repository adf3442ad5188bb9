"""The systems, where the models of ``explain`` look them up."""

from eraser_hub.systems.system import SYSTEMS as SYSTEMS
