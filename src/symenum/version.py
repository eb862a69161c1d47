"""The version, in one place: the package, its metadata and the files that it writes take it from here."""

__all__ = ["__version__"]

__version__ = "0.3.0"
