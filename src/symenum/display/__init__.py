"""What a search has found, shown: tables."""
