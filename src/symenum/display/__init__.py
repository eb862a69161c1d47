"""Shows what a search finds: the table of laws, the search while it runs, plots, and the report page of a fit.

It comes before the estimators in the order of imports, and they hand it plain values: it knows laws, fronts and reports
of steps, and not how they were found. Nothing that the command line needs for its help imports torch.
"""
