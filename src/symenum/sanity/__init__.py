"""Sanity: which laws no scientist would print, and why. One policy (`Policy`), asked before a law enters a front.

- `policy`: the policy and its reasons in words.
- `resolution`: periodic functions that the rows do not resolve.
- `domains`: poles, overflow and undefined points, by interval arithmetic (`intervals`) on the `region` of the data.
- `constants`: their number, their size, and giants that cancel.
"""

from symenum.sanity.policy import REASONS, SANITY, Policy

__all__ = ["REASONS", "SANITY", "Policy"]
