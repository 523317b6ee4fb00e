"""Many restarts in a row: nothing that a restart takes is left behind."""

import os
import signal

from checkpoint_drills.runs import Failure

from .fleet import kill

RESTARTS = 200
SETTLED = 20  # restarts, until caches and heaps have the size that they need
MORE_MEMORY = 0.1  # of a process, as a share
MORE_BYTES = 1 << 20  # of a process's memory, or of the fleet's folder in memory: allocators are not exact


def descriptors_of(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def resident_bytes_of(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def folder_bytes(root):
    """Of all files, and their number."""
    sizes = [os.lstat(os.path.join(folder, name)).st_size for folder, _, names in os.walk(root) for name in names]
    return sum(sizes), len(sizes)


def take_stock(fleet):
    lasting = {"supervisor": fleet.process.pid}
    for node in fleet.node_names():
        lasting |= {f"anchor of {node}": fleet.anchor(node), f"monitor of {node}": fleet.monitor(node)}
    stock = {"processes": len(fleet.all_processes())}
    stock["bytes in /dev/shm"], stock["files in /dev/shm"] = folder_bytes(fleet.memory_root())
    for name, pid in lasting.items():
        stock[f"descriptors of {name}"] = descriptors_of(pid)
        stock[f"memory of {name}"] = resident_bytes_of(pid)
    return stock


def growth(before, after):
    for what in before:
        more = after[what] - before[what]
        if what.startswith("memory of"):
            is_flat = more <= max(MORE_BYTES, MORE_MEMORY * before[what])
        elif what.startswith("bytes"):
            is_flat = more <= MORE_BYTES
        else:
            is_flat = more <= 0
        if not is_flat:
            yield f"{what}: {before[what]} after {SETTLED} restarts, {after[what]} after all"


def has_made_progress(fleet, generation):
    return any(fact["kind"] == "progress" and fact["about"] == generation for fact in fleet.journal()[-20:])


def flat(campaign):
    restarts = 2 * SETTLED if campaign.given.fast else campaign.given.restarts
    fleet = campaign.fleet(campaign.new_name("flat"), size="2x1", step_seconds=0.02)
    try:
        fleet.start()
        fleet.wait_for_steps(10)
        before = after = None
        for restart in range(1, restarts + 1):
            generation = fleet.generation()
            kill(fleet.rank(campaign.moments.randrange(2)), signal.SIGKILL)
            fleet.wait_for_generation(generation + 1)
            # That gives the budget back: the next restart is a first one again.
            fleet.wait_for("a new step", lambda: has_made_progress(fleet, generation + 1))
            if restart == SETTLED:
                before = take_stock(fleet)
            if restart % SETTLED == 0:
                after = take_stock(fleet)
                print(f"{restart} restarts: {after}", flush=True)
        if fleet.generation() != restarts + 1:
            raise Failure(f"generation {fleet.generation()} after {restarts} restarts")
        grown = list(growth(before, after))
        if grown:
            raise Failure("; ".join(grown))
        campaign.stop_and_compare(fleet)
        return {"restarts": restarts, "processes": after["processes"], "files": after["files in /dev/shm"]}
    finally:
        fleet.end()


ROWS = {"restarts": flat}
