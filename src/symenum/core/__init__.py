"""What every part uses and what uses no part: time, interrupts, files, and what counts as zero."""
