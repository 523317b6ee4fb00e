"""Nodes that are lost with all they held, in the middle of training."""

import os
import random
import shutil
import tempfile
import time

from layout_words import ranks_of

from .kills import Drill as Kills
from .runs import CALLBACK, Failure, Runs, names_of_difference

STEPS = 120
FAST_STEPS = 40
INTERVAL = 2
PERSISTENT_INTERVAL = 1000  # none but that at the end
MOST_LOST = 2 * INTERVAL  # a save beside training is awaited when the next one is due
SETTINGS = [("DP2", 2), ("TP2 DP2", 2), ("PP2 DP2", 2), ("DP4", 4)]


class Drill:
    """Each node has a disk and a memory of its own, here folders. One rank or more run on each."""

    def __init__(self, runs, memory, moments, steps):
        self.runs = runs
        self.memory = memory
        self.moments = moments
        self.steps = steps
        self.lost = []
        runs.memory = os.path.join(memory, "node%n")

    def disk(self, name):
        return self.runs.directory(name) + "-disks"

    def overrides(self, name, layout, nodes):
        return [f"trainer.num_nodes={nodes}", f"trainer.devices={ranks_of(layout) // nodes}", f"{CALLBACK}local_peer_copy=true",
                f"{CALLBACK}every_n_train_steps={PERSISTENT_INTERVAL}", f"{CALLBACK}local_every_n_train_steps={INTERVAL}",
                f"{CALLBACK}local_dirpath={self.disk(name)}/node%n"]

    def lose_node(self, name, node):
        for folder in (self.disk(name), self.memory):
            shutil.rmtree(os.path.join(folder, f"node{node}"), ignore_errors=True)

    def check(self, name, layout, nodes, kills):
        reference = f"{name}-reference"
        overrides = self.overrides(name, layout, nodes)
        begin = time.monotonic()
        self.runs.train_well(reference, layout, self.steps, self.overrides(reference, layout, nodes))
        seconds = time.monotonic() - begin
        expected = self.runs.digests(self.runs.step(reference, self.steps))
        for _ in range(kills):
            moment = self.moments.uniform(0.2, 0.6) * seconds
            if not Kills.start_and_kill(self.runs.command(name, layout, self.steps, overrides), moment):
                break
            self.lose_node(name, self.moments.randrange(nodes))
        else:
            self.runs.train_well(name, layout, self.steps, overrides)
        self.count_lost(name)
        different = names_of_difference(self.runs.digests(self.runs.step(name, self.steps)), expected)
        if different:
            raise Failure(f"{len(different)} tensors are not those of a run that lost no node, {different[0]} first")

    def count_lost(self, name):
        reached = None
        for event in self.runs.events(name):
            if event["event"] == "checkpoint_loaded":
                if reached is not None:
                    self.lost.append(reached - event["step"])
                    if self.lost[-1] > MOST_LOST:
                        raise Failure(f"{self.lost[-1]} steps lost")
                reached = event["step"]
            elif event["event"] == "metrics":
                reached = event["step"] + 1


def run(given, folder):
    memory = tempfile.mkdtemp(prefix="check-checkpoints-", dir="/dev/shm")
    try:
        drill = Drill(Runs(given.program, folder), memory, random.Random(given.seed), FAST_STEPS if given.fast else STEPS)
        return run_with(drill, SETTINGS[1:2] if given.fast else SETTINGS, kills=1 if given.fast else 4)
    finally:
        shutil.rmtree(memory)


def run_with(drill, settings, kills):
    failed = 0
    print("| layout | nodes | nodes lost | steps lost each time |", "|---" * 4 + "|", sep="\n")
    for number, (layout, nodes) in enumerate(settings):
        drill.lost = []
        try:
            drill.check(f"lost-{number}", layout, nodes, kills)
            said = ", ".join(map(str, drill.lost))
        except Failure as failure:
            failed += 1
            said = str(failure)
        print(f"| {layout} | {nodes} | {len(drill.lost)} | {said} |", flush=True)
    print(f"\nA checkpoint on the nodes every {INTERVAL} steps, none on shared storage; {failed} runs failed.\n")
    return failed
