"""Control groups of a drill, of either version; each raises Skip where this machine does not let it."""

import os

GROUPS = "/sys/fs/cgroup"
LITTLE = 1 << 16  # bytes of memory; the kernel rounds up to a page


class Skip(Exception):
    """This machine cannot show it, and why."""


def write(text, *path):
    with open(os.path.join(*path), "w") as file:
        file.write(f"{text}\n")


def own_group(controller):
    """A new group of this process's own, in which nobody is yet, and whether it is of version 1."""
    for root, is_first in ((os.path.join(GROUPS, controller), True), (GROUPS, False)):
        group = os.path.join(root, f"megalith-drill-{os.getpid()}")
        try:
            os.makedirs(group, exist_ok=True)
        except OSError:
            continue
        if os.path.exists(os.path.join(group, "cgroup.procs")) and (is_first or controller in controllers_of(group)):
            return group, is_first
        os.rmdir(group)
    raise Skip(f"no control group for {controller} can be made here (it takes root)")


def controllers_of(group):
    with open(os.path.join(group, "cgroup.controllers")) as file:
        return file.read().split()


def leave(controller):
    """What lives on in the group goes where it can stay."""
    try:
        group, _ = own_group(controller)
    except Skip:
        return
    with open(os.path.join(group, "cgroup.procs")) as file:
        for pid in file.read().split():
            write(pid, os.path.dirname(group), "cgroup.procs")
    os.rmdir(group)


def starve(pid):
    """No further memory: the kernel kills it when it asks for some."""
    group, is_first = own_group("memory")
    write(LITTLE, group, "memory.limit_in_bytes" if is_first else "memory.max")
    write(pid, group, "cgroup.procs")


def slow_down(disk, bytes_a_second, pids):
    """What these processes write to and read from the block device of number `disk`."""
    group, is_first = own_group("blkio" if os.path.isdir(os.path.join(GROUPS, "blkio")) else "io")
    if is_first:
        for what in ("read", "write"):
            write(f"{disk} {bytes_a_second}", group, f"blkio.throttle.{what}_bps_device")
    else:
        write(f"{disk} rbps={bytes_a_second} wbps={bytes_a_second}", group, "io.max")
    for pid in pids:
        write(pid, group, "cgroup.procs")
