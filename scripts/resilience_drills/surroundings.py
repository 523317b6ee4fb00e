"""Disks and clocks that misbehave, and what others have left: nothing that computes is hurt, and nothing restarts."""

import os
import signal
import socket
import subprocess
import tempfile
import time

from checkpoint_drills.full import SmallDisk, can_mount
from checkpoint_drills.runs import CALLBACK, Failure

from . import cgroups
from .cgroups import Skip
from .fleet import kill, pid_in, wait_for

FAKETIME = "/usr/lib/{}/faketime/libfaketimeMT.so.1"
INTERVAL = 4  # steps from one persistent save to the next


def expect_unhurt(fleet, generation):
    if fleet.generation() != generation:
        raise Failure(f"generation {fleet.generation()} followed: {fleet.roster()['reason']}")


def saved(fleet):
    """Steps of the persistent saves that went well."""
    return [event["step"] for event in fleet.events()
            if event["event"] == "checkpoint_saved" and event["fields"].get("tier") == "persistent"]


def failed_saves(fleet):
    return [event["step"] for event in fleet.events() if event["event"] == "checkpoint_failed"]


class Disks:
    """Small file systems in memory, in place of the folder of checkpoints and of a node's disk."""

    def __init__(self, campaign, *places, size=64 << 20):
        if not can_mount(tempfile.mkdtemp(dir=campaign.folder)):
            raise Skip("a small tmpfs cannot be mounted here (it takes root)")
        self.disks = [SmallDisk(place, size) for place in places]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for disk in self.disks:
            subprocess.run(["umount", "--lazy", disk.directory], check=True)

    def fill(self):
        for disk in self.disks:
            with open(os.path.join(disk.directory, "ballast"), "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(1 << 16))
                except OSError:
                    pass

    def empty(self):
        for disk in self.disks:
            os.remove(os.path.join(disk.directory, "ballast"))

    def remount(self, options):
        for disk in self.disks:
            wait_for(f"{disk.directory} {options}", lambda: subprocess.run(
                ["mount", "-o", f"remount,{options}", disk.directory], stderr=subprocess.DEVNULL).returncode == 0)


def bad_disk(campaign, name, spoil, mend):
    """Saves fail while the disk is bad, and the run trains on; once it is good again they go well."""
    fleet_name = campaign.new_name(name)
    place = campaign.runs.directory(fleet_name) + "-checkpoints"
    with Disks(campaign, place) as disks:
        fleet = campaign.fleet(fleet_name, interval=INTERVAL, overrides=[f"{CALLBACK}dirpath={place}"])
        try:
            fleet.start()
            fleet.wait_for("a save", lambda: saved(fleet))
            generation = fleet.generation()
            spoil(disks)
            fleet.wait_for("a save that fails", lambda: failed_saves(fleet))
            fleet.wait_for_steps(2 * INTERVAL)
            mend(disks)
            last = fleet.best_step()
            fleet.wait_for("a save that goes well", lambda: max(saved(fleet), default=-1) > last)
            expect_unhurt(fleet, generation)
            campaign.stop_and_compare(fleet, place)
            return {"failed_saves": len(failed_saves(fleet)), "lost": 0}
        finally:
            fleet.end()


def disk_full(campaign):
    return bad_disk(campaign, "disk-full", Disks.fill, Disks.empty)


def disk_read_only(campaign):
    return bad_disk(campaign, "disk-read-only", lambda disks: disks.remount("ro"), lambda disks: disks.remount("rw"))


def disk_slow(campaign):
    """1 MB/s for everything that ranks write to disks, theirs and the persistent one."""
    fleet = campaign.fleet(campaign.new_name("disk-slow"), interval=INTERVAL)
    try:
        fleet.start()
        fleet.wait_for("a save", lambda: saved(fleet))
        generation = fleet.generation()
        device = os.stat(campaign.folder).st_dev
        try:
            cgroups.slow_down(f"{os.major(device)}:{os.minor(device)}", 1 << 20,
                              [fleet.rank(rank) for rank in range(fleet.nodes * fleet.ranks_per_node)])
        except OSError as error:
            raise Skip(f"the disk of {campaign.folder} cannot be slowed down: {error}") from None
        before, steps, began = len(saved(fleet)), fleet.best_step(), time.monotonic()
        fleet.wait_for("two slow saves", lambda: len(saved(fleet)) >= before + 2)
        per_step = (time.monotonic() - began) / (fleet.best_step() - steps)
        expect_unhurt(fleet, generation)
        cgroups.leave("blkio")
        campaign.stop_and_compare(fleet)
        return {"seconds_per_step": round(per_step, 2), "lost": 0}
    finally:
        fleet.end()
        cgroups.leave("blkio")


def run_directory_full(campaign):
    """Nothing can be decided or written down, and the run trains on; a rank that dies meanwhile waits for the roster."""
    name = campaign.new_name("run-directory-full")
    with Disks(campaign, campaign.runs.directory(name)) as disks:
        fleet = campaign.fleet(name, is_mounted=True)
        try:
            fleet.start()
            fleet.wait_for_steps(4)
            generation = fleet.generation()
            disks.fill()
            log = os.path.join(fleet.disks, fleet.node_of(0), "logs", f"g{generation:06}-r00000.log")
            before = steps_in(log)
            wait_for("steps without a run directory", lambda: steps_in(log) >= before + 4)
            rank = campaign.moments.randrange(fleet.nodes * fleet.ranks_per_node)
            kill(fleet.rank(rank), signal.SIGKILL)
            time.sleep(5.0)
            expect_unhurt(fleet, generation)
            disks.empty()
            fleet.wait_for_generation(generation + 1)
            fleet.wait_for_steps(3)
            campaign.stop_and_compare(fleet)
            return {"generations": fleet.generation() - generation}
        finally:
            fleet.end()


def steps_in(log):
    with open(log, errors="replace") as file:
        return sum("global_step=" in line for line in file)


# Clocks.

def faketime(offsets):
    """The environment of a process whose wall clock is off by what this file says, now and later."""
    library = next((path for path in (FAKETIME.format(f"{os.uname().machine}-linux-gnu"),) if os.path.exists(path)), None)
    if library is None:
        raise Skip("libfaketime is not here: scripts/install-deps --drills")
    return {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": offsets, "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DISABLE_SHM": "1"}


def set_clock(offsets, seconds):
    with open(offsets + ".new", "w") as file:
        file.write(f"{seconds:+d}\n")
    os.replace(offsets + ".new", offsets)


def give_ranks_to(fleet, node, index=0):
    """By losing the node that has them: the fleet's only spare is this one."""
    lost = fleet.roster()["nodes"][index]["node"]
    generation = fleet.generation()
    fleet.lose_nodes(lost)
    fleet.wait_for_generation(generation + 1)
    if fleet.roster()["nodes"][index]["node"] != node:
        raise Failure(f"{fleet.roster()['nodes'][index]['node']} took the ranks, not {node}")
    fleet.wait_for_steps(4)


def clocks(campaign):
    """Of one process of each kind: the supervisor's alone, then those of a node with ranks and the store."""
    fleet = campaign.fleet(campaign.new_name("clocks"), spares=0)
    offsets = {who: os.path.join(campaign.folder, f"clock-of-{who}") for who in ("supervisor", "node")}
    try:
        for path in offsets.values():
            set_clock(path, 0)
        environments = {who: faketime(path) for who, path in offsets.items()}
        fleet.start()
        fleet.wait_for_steps(4)
        fleet.join("node9", environments["node"])
        give_ranks_to(fleet, "node9")
        fleet.kill_supervisor()
        fleet.take_over(environments["supervisor"])
        fleet.wait_for_steps(4)
        generation = fleet.generation()
        for who in offsets:
            for seconds in (3600, -3600, 0):
                set_clock(offsets[who], seconds)
                fleet.wait_for_steps(8)
                expect_unhurt(fleet, generation)
                print(f"clocks: {who} {seconds:+d} s, nothing restarts", flush=True)
        # With clocks that are off, a fault is noticed as ever: deadlines are no matter of the wall clock.
        for seconds in (3600, -3600):
            for path in offsets.values():
                set_clock(path, seconds)
            before, generation = time.monotonic(), fleet.generation()
            kill(fleet.rank(fleet.ranks_per_node), signal.SIGKILL)
            fleet.wait_for_generation(generation + 1)
            fleet.wait_for_steps(3)
            line = campaign.measure(fleet, before)
            print(f"clocks: {seconds:+d} s, a rank killed: {line}", flush=True)
            if line["lost"] > 2 or line["generations"] != 1:
                raise Failure(f"a rank was killed while clocks were off by {seconds} s: {line}")
        campaign.stop_and_compare(fleet)
        done = subprocess.run([campaign.given.program, "report", "goodput", fleet.directory], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"report goodput: exit code {done.returncode}: {done.stdout}{done.stderr}")
        return {"lost": 0}
    finally:
        fleet.end()


def monotonic_bases(campaign):
    """A node whose monotonic and boot clocks began 100,000 s earlier than the others', and then one that began later."""
    fleet = campaign.fleet(campaign.new_name("monotonic-bases"), spares=0)
    through = ["unshare", "--time", "--monotonic", "100000", "--boottime", "100000"]
    if subprocess.run([*through, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("no time namespace can be made here (it takes root)")
    try:
        fleet.start()
        fleet.wait_for_steps(4)
        fleet.join("node9", through=through)
        give_ranks_to(fleet, "node9", index=1)
        generation = fleet.generation()
        fleet.wait_for_steps(12)
        expect_unhurt(fleet, generation)
        first = fleet.ranks_per_node
        for pid in (fleet.rank(first), fleet.monitor("node9")):
            kill(pid, signal.SIGKILL)
        fleet.wait_for_generation(generation + 1)
        fleet.wait_for_steps(4)
        campaign.stop_and_compare(fleet)
        return {"lost": 0}
    finally:
        fleet.end()


# What an earlier run has left.

def leftovers(campaign):
    """All processes of a run are killed at once. Then its pages, locks, records and socket are stale, its process numbers are
    somebody else's, and the port of its store is taken."""
    fleet = campaign.fleet(campaign.new_name("leftovers"))
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    listener = socket.socket()
    try:
        fleet.start()
        fleet.wait_for_steps(4)
        root, roster = fleet.memory_root(), fleet.roster()
        generation = roster["generation"]
        place = os.path.join(root, roster["store_node"], "monitor", f"store-{generation:06}")
        with open(place) as file:
            address, port = file.read().split()[:2]
        fleet.kill_everything()
        # A port that was served keeps its number for a while.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, int(port)))
        listener.listen()
        listener.setblocking(False)
        reused = reuse_numbers(root, stranger.pid)
        fleet.start()
        fleet.wait_for_generation(generation + 1)
        fleet.wait_for_steps(4)
        if stranger.poll() is not None:
            raise Failure("a process that is nobody's was killed for its number")
        try:
            listener.accept()
            raise Failure("somebody has spoken to the port of a store that is gone")
        except BlockingIOError:
            pass
        campaign.stop_and_compare(fleet)
        return {"records": reused, "from_step": fleet.roster()["from_step"]}
    finally:
        stranger.kill()
        stranger.wait()
        listener.close()
        fleet.end()


def reuse_numbers(root, pid):
    """Every record of a process names this one, with the start time of the one that is gone."""
    count = 0
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            is_record = os.path.basename(folder) == "processes" or name in ("anchor", "worker")
            if not is_record or pid_in(path) is None:
                continue
            with open(path) as file:
                words = file.read().split()
            with open(path, "w") as file:
                file.write(f"{words[0]} {pid} {words[2]}\n")
            count += 1
    return count


ROWS = {"disk-full": disk_full, "disk-read-only": disk_read_only, "disk-slow": disk_slow, "run-directory-full": run_directory_full,
        "clocks": clocks, "monotonic-bases": monotonic_bases, "leftovers": leftovers}
