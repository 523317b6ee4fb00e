"""The disk fills up while a run trains."""

import os
import subprocess
import tempfile

from .leftovers import leftovers_in_checkpoints
from .runs import CALLBACK, Failure, Runs, names_of_difference

STEPS = 10
INTERVAL = 2
ROOM = 1.5  # checkpoints: the second does not fit beside the first
LAYOUTS = ("", "TP2")


class SmallDisk:
    def __init__(self, directory, size):
        self.directory = directory
        os.makedirs(directory)
        self.mount(f"size={size}")

    def mount(self, options):
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.directory], check=True, stderr=subprocess.DEVNULL)

    def make_room(self, size):
        self.mount(f"remount,size={size}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", self.directory], check=True)


def can_mount(folder):
    try:
        with SmallDisk(os.path.join(folder, "try"), 4096):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def size_of(directory):
    return sum(os.path.getsize(os.path.join(directory, name)) for name in os.listdir(directory))


def check(runs, layout, name):
    """Words on what happened."""
    settings = [f"{CALLBACK}every_n_train_steps={INTERVAL}", f"{CALLBACK}save_top_k=1"]
    reference = f"{name}-reference"
    runs.train_well(reference, layout, STEPS, settings)
    bytes_of_one = size_of(runs.step(reference, STEPS))
    with SmallDisk(runs.directory(f"{name}-disk"), int(ROOM * bytes_of_one)) as disk:
        settings.append(f"{CALLBACK}dirpath={disk.directory}")
        code, output = runs.train(name, layout, STEPS, settings)
        trained = max(runs.losses(name), default=-1) + 1
        if trained != STEPS:
            raise Failure(f"training ended after {trained} steps")
        if code == 0 or f"the checkpoint of step {STEPS} could not be saved" not in output:
            raise Failure(f"exit code {code}, though the last checkpoint was not saved\n{output[-2000:]}")
        failed = [event["step"] for event in runs.events(name) if event["event"] == "checkpoint_failed"]
        if not failed or "No space left on device" not in output:
            raise Failure(f"nobody was told that the disk is full\n{output[-2000:]}")
        kept = expect_only_first_step(runs, disk.directory)
        disk.make_room(4 * bytes_of_one)
        runs.train_well(name, layout, STEPS, settings)
        resumed = [event["step"] for event in runs.events(name) if event["event"] == "checkpoint_loaded"][-1]
        last = os.path.join(disk.directory, f"step-{STEPS:08}")
        different = names_of_difference(runs.digests(last), runs.digests(runs.step(reference, STEPS)))
        if different:
            raise Failure(f"{len(different)} tensors are not those of a run with room, {different[0]} first")
    return f"step {kept} stays good; saves of steps {failed} fail; with room it goes on from step {resumed} to the same bits"


def expect_only_first_step(runs, directory):
    runs.verify(directory)
    left = leftovers_in_checkpoints(directory)
    if left:
        raise Failure(f"left behind: {', '.join(left)}")
    steps = [name for name in os.listdir(directory) if name.startswith("step-")]
    if len(steps) != 1:
        raise Failure(f"the disk holds {steps}")
    return int(steps[0].removeprefix("step-"))


def run(given, folder):
    if not can_mount(folder):
        print("full: skipped, a small tmpfs cannot be mounted here (it takes root)\n")
        return 0
    failed = 0
    print("| ranks | copy in memory | verdict |", "|---" * 3 + "|", sep="\n")
    for layout in LAYOUTS[:1] if given.fast else LAYOUTS:
        for with_memory in (False, True):
            runs = Runs(given.program, tempfile.mkdtemp(dir=folder))
            with tempfile.TemporaryDirectory(prefix="check-checkpoints-", dir="/dev/shm") as memory:
                runs.memory = memory if with_memory else None
                try:
                    verdict = check(runs, layout, "run")
                except Failure as failure:
                    failed += 1
                    verdict = f"FAILED: {failure}"
            print(f"| {2 if layout else 1} | {'yes' if with_memory else 'no'} | {verdict} |", flush=True)
    print()
    return failed
