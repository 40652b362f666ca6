"""Times PyTorch's copy_ from a pinned tensor, as bench/device_costs times its contenders.

    bench/gpu/run torch

The pinned tensor is written before each copy, as an engine would, and nothing keeps the copy from
reading what is written next: it stands beside device_costs' unsafe "raw".
"""

import statistics
import sys
import time

try:
    import torch
except ImportError:
    print("torch_copy: SKIPPED. There is no PyTorch here.")
    sys.exit(0)

CALLS = 1000
LOOPS = 9
SLOTS = 64


def ns_a_call(values, pinned, there):
    torch.cuda.synchronize()
    start = time.perf_counter_ns()
    for n in range(CALLS):
        slot = pinned[n % SLOTS]
        slot.copy_(values)
        there.copy_(slot, non_blocking=True)
    return (time.perf_counter_ns() - start) / CALLS


def main():
    if not torch.cuda.is_available():
        print("torch_copy: SKIPPED. PyTorch has no GPU here.")
        return
    print(f"PyTorch {torch.__version__}: copy_ into a pinned tensor, then to the device, loops of {CALLS}")
    for count in (64, 1024, 16384):
        values = torch.ones(count, dtype=torch.int32)
        pinned = [torch.empty(count, dtype=torch.int32, pin_memory=True) for _ in range(SLOTS)]
        there = torch.empty(count, dtype=torch.int32, device="cuda")
        ns_a_call(values, pinned, there)
        median = statistics.median(ns_a_call(values, pinned, there) for _ in range(LOOPS))
        print(f"  {count * 4:6} B  {median:9.1f} ns")


main()
