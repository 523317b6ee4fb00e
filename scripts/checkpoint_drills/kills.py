"""Killed at random moments, while it saves every 2 steps."""

import collections
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

from .leftovers import leftovers_in_checkpoints, leftovers_in_memory, leftovers_on_node
from .runs import CALLBACK, Failure, Runs, names_of_difference

STEPS = 40
INTERVAL = 2

# How a run keeps its state, and how many intervals a kill may cost it. A save beside training is awaited when the next one is
# due: killed then, the run goes on from the one before, two intervals back. A save that training waits for costs one.
KINDS = {
    "beside training": ([], 2),
    "beside training, copy in memory": ([], 2),
    "training waits": ([f"{CALLBACK}async_save=false"], 1),
    "beside training, node's disk": ([f"{CALLBACK}local_every_n_train_steps=1"], 2),
}


class Drill:
    """Runs that are killed a few times each and then left to end."""

    def __init__(self, runs, memory, moments):
        self.runs = runs
        self.memory = memory
        self.moments = moments
        self.references = {}
        self.kills = {kind: 0 for kind in KINDS}
        self.lost = {kind: collections.Counter() for kind in KINDS}

    def node(self, name):
        return self.runs.directory(name) + "-node"

    def overrides(self, name, kind):
        self.runs.memory = self.memory if "memory" in kind else None
        overrides = [f"{CALLBACK}every_n_train_steps={INTERVAL}", f"{CALLBACK}save_top_k=2", *KINDS[kind][0]]
        return overrides + ([f"{CALLBACK}local_dirpath={self.node(name)}"] if "disk" in kind else [])

    def reference(self, layout):
        """Digests at the end of a run that nobody kills, and how many seconds it takes."""
        if layout not in self.references:
            name = f"reference-{len(self.references)}"
            begin = time.monotonic()
            self.runs.train_well(name, layout, STEPS, self.overrides(name, "beside training"))
            self.references[layout] = self.runs.digests(self.runs.step(name, STEPS)), time.monotonic() - begin
        return self.references[layout]

    def check(self, name, kind, layout, kills):
        """Kills a new run up to this many times: where it is quicker than that, fewer."""
        expected, seconds = self.reference(layout)
        overrides = self.overrides(name, kind)
        for _ in range(kills):
            if not self.start_and_kill(self.runs.command(name, layout, STEPS, overrides), self.moments.uniform(0.0, seconds)):
                break
            self.kills[kind] += 1
            self.expect_good_checkpoints(name)
        else:
            self.runs.train_well(name, layout, STEPS, overrides)
        self.count_lost(name, kind)
        different = names_of_difference(self.runs.digests(self.runs.step(name, STEPS)), expected)
        if different:
            raise Failure(f"{len(different)} tensors are not those of a run that was not killed, {different[0]} first")
        left = leftovers_in_checkpoints(os.path.join(self.runs.directory(name), "checkpoints")) + leftovers_on_node(self.node(name))
        if "memory" in kind:
            left += leftovers_in_memory(self.memory)
        if left:
            raise Failure(f"left behind: {', '.join(left)}")

    @staticmethod
    def start_and_kill(command, seconds):
        """Whether it was killed: false where it had ended before."""
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                kill_with_ranks(process)
                return True
            if code != 0:
                output.seek(0)
                raise Failure(f"exit code {code} before it was killed: {' '.join(command)}\n{output.read()[-2000:]}")
        return False

    def expect_good_checkpoints(self, name):
        directory = os.path.join(self.runs.directory(name), "checkpoints")
        if os.path.isdir(directory) and any(os.path.exists(os.path.join(directory, step, "manifest.json"))
                                            for step in os.listdir(directory)):
            self.runs.verify(directory)

    def count_lost(self, name, kind):
        """Of each start but the first, the steps that the one before had told of and it did again."""
        reached = None
        for event in self.runs.events(name):
            if event["event"] == "checkpoint_loaded":
                if reached is not None:
                    self.lost[kind][reached - event["step"]] += 1
                reached = event["step"]
            elif event["event"] == "metrics":
                reached = event["step"] + 1
        most = max(self.lost[kind], default=0)
        if most > KINDS[kind][1] * INTERVAL:
            raise Failure(f"{most} steps lost")


def children_of(process):
    with open(f"/proc/{process}/task/{process}/children") as file:
        return [int(child) for child in file.read().split()]


def state_of(process):
    """As in /proc: R, S, T, ...; Z where there is none."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "Z"


def is_alive(process):
    return state_of(process) not in "ZX"


def kill_with_ranks(launcher):
    """All at once: a launcher that lives on would end its ranks by itself, and they would save."""
    os.kill(launcher.pid, signal.SIGSTOP)
    while state_of(launcher.pid) not in "TZ":  # till then it may start another one
        time.sleep(0.001)
    ranks = children_of(launcher.pid)
    for process in [*ranks, launcher.pid]:
        os.kill(process, signal.SIGKILL)
    launcher.wait()
    while any(is_alive(rank) for rank in ranks):
        time.sleep(0.001)


def run(given, folder):
    memory = tempfile.mkdtemp(prefix="check-checkpoints-", dir="/dev/shm")
    try:
        drill = Drill(Runs(given.program, folder), memory, random.Random(given.seed))
        return run_with(drill, given.kills, kills_of_a_run=2 if given.fast else 3)
    finally:
        shutil.rmtree(memory)


def run_with(drill, kills, kills_of_a_run):
    failed = number = 0
    while (left := kills - sum(drill.kills.values())) > 0:
        kind = list(KINDS)[number % len(KINDS)]
        layout = "TP2" if number % 16 >= 12 else ""
        try:
            drill.check(f"run-{number}", kind, layout, min(left, kills_of_a_run))
        except Failure as failure:
            failed += 1
            print(f"run {number} ({kind}, {layout or 'one rank'}): {failure}", flush=True)
        else:
            shutil.rmtree(drill.runs.directory(f"run-{number}"))
        number += 1
    print("| saves | kills | restarts by steps lost |", "|---" * 3 + "|", sep="\n")
    for kind in KINDS:
        lost = ", ".join(f"{steps}: {count}" for steps, count in sorted(drill.lost[kind].items()))
        print(f"| {kind} | {drill.kills[kind]} | {lost} |")
    print(f"\n{sum(drill.kills.values())} kills in {number} runs of {STEPS} steps that save every {INTERVAL}; {failed} runs failed.\n")
    return failed
