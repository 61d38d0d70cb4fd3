#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""
Peer of a domain's creation: torch.distributed.new_group of all ranks with gloo.

All ranks are on one node and read the same clock, so a turn lasts from the first entry to the last
return. They find each other by a file and talk over the loopback. Prints the median and the p99 in
microseconds and the library's version.

usage: gloo_group.py RANKS TURNS DIRECTORY
"""
import os
import sys
import time

import torch
import torch.distributed as dist

WARM_UP = 3


def one_turn(ranks):
    dist.barrier()
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    group = dist.new_group(list(range(ranks)), backend="gloo")
    end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    span = torch.tensor([-begin, end], dtype=torch.int64)
    dist.all_reduce(span, op=dist.ReduceOp.MAX)
    dist.destroy_process_group(group)
    return int(span[0] + span[1]) / 1e3


def one_rank(rank, ranks, turns, directory):
    dist.init_process_group(
        "gloo", init_method=f"file://{directory}/gloo", rank=rank, world_size=ranks
    )
    for _ in range(WARM_UP):
        one_turn(ranks)
    us = sorted(one_turn(ranks) for _ in range(turns))
    if not rank:
        print(f"{us[turns // 2]:.1f} {us[turns * 99 // 100]:.1f} PyTorch {torch.__version__}, gloo")
        sys.stdout.flush()
    dist.barrier()


def main():
    ranks, turns, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    children = []
    for rank in range(ranks):
        pid = os.fork()
        if not pid:
            one_rank(rank, ranks, turns, directory)
            os._exit(0)
        children.append(pid)
    bad = [pid for pid in children if os.waitpid(pid, 0)[1]]
    sys.exit(1 if bad else 0)


main()
