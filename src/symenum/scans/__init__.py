"""The rows, pairs and triples of rows that explain a target best by least squares; for heads, tokens and dynamics.

`pairs` and `triples` are the scans to call. `r_squared` has the formulas, `projection` the rows off a background,
`pair_tests` the tests by matrix products and `best_pairs` the exact scan that uses them; `cuda_pairs` and
`pair_kernels` do the same on a GPU. `products` scans all products of up to four factors. No module here knows
expressions, but `products`, which writes its products as trees.
"""
