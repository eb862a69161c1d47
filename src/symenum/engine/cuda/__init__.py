"""A pass on NVIDIA GPUs: bank and scan on the device, the pool of the best on the host.

`passes` is the door, `bank` and `scan` launch the kernels of `kernels`. Triton is imported by `kernels` only, and that
module only when a GPU is used: without Triton everything else can still be imported.
"""
