"""A pass on an NVIDIA GPU: bank, scan and shortlist on the device. Kernels are imported only where Triton is there."""
