"""What a search finds, shown: the table of laws, the search while it runs, pictures, and the report of a fit.

Stands before the estimators, which hand it plain values: it knows laws, fronts and reports of steps, and not how they
were found. Nothing that the command line needs for its help imports torch.
"""
