"""The best of all single rows, pairs and triples of rows for a target: what the heads, tokens and dynamics share.

`r_squared` has the formulas, `pairs` and `triples` the scans.
"""
