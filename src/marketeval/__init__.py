"""marketeval: evaluate AI agents as participants in competitive markets."""

__version__ = "0.1.0"
