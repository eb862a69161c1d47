"""The studio: a local web page on the runs of a folder, and the server behind it (`symenum studio`).

The server reads and writes folders of runs (`symenum.run_directory`) and starts searches as processes of their own, so
that neither a closed page nor the end of the server ends a search. It needs the extra `symenum[studio]`.
"""

from symenum.studio.widget import watch

__all__ = ["watch"]
