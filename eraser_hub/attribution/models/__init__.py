"""The kinds of models that `explain` takes, a file each, behind one interface (:class:`model.Model`)."""
