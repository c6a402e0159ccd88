"""recombine: can a generative model draw what it has never seen, by recombining what it has?"""

__version__ = "0.1.0"
