"""Pipelines, where the models of ``explain`` look for them."""

from eraser_hub.systems.pipelines.pipeline import pipeline_of as pipeline_of
