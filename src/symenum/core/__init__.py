"""What every room uses: budgets, checked data, exactness, seeds, threads, memory, devices, files, signals, plug-ins.

Nothing here imports another room.
"""
