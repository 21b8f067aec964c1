"""A first compilation may take a second, so properties run without a deadline."""

from hypothesis import settings

settings.register_profile("metrics", deadline=None, max_examples=40)
settings.load_profile("metrics")
