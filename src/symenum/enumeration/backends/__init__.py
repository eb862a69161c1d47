"""Where a pass is computed; a backend is one module with one function, `scan`."""
