"""Signals that ask the whole fleet to stop."""

import glob
import os
import signal
import time

from checkpoint_drills.runs import Failure

from .fleet import kill, wait_for

STOPPED = 75
GRACE = 30.0  # seconds


def stop_and_go_on(campaign, name, strike, failpoints="", interval=None):
    """`strike` sends what it likes once the fleet trains. It saves, exits with 75, and the same command goes on."""
    fleet = campaign.fleet(campaign.new_name(name), failpoints, **({"interval": interval} if interval else {}))
    try:
        fleet.start()
        fleet.wait_for_steps(3)
        strike(fleet)
        began = time.monotonic()
        code = fleet.wait()
        took = round(time.monotonic() - began, 1)
        if code != STOPPED:
            raise Failure(f"exit code {code}, not {STOPPED}\n{fleet.last_words()}")
        if campaign.is_timed() and took > GRACE:
            raise Failure(f"it took {took} s, not {GRACE}")
        reached = fleet.best_step() + 1
        campaign.runs.verify(campaign.runs.step(fleet.name, reached))
        generation = fleet.generation()
        fleet.start()
        fleet.wait_for_generation(generation + 1)
        if fleet.roster()["from_step"] != reached:
            raise Failure(f"it was saved in step {reached}, and went on from {fleet.roster()['from_step']}")
        fleet.wait_for_steps(3)
        campaign.stop_and_compare(fleet)
    finally:
        fleet.end()
    return {"seconds": took, "lost": 0}


def terminate(fleet):
    fleet.process.send_signal(signal.SIGTERM)


def stop(campaign):
    return stop_and_go_on(campaign, "stop", terminate)


def stop_twice(campaign):
    def twice(fleet):
        terminate(fleet)
        time.sleep(0.1)
        terminate(fleet)
    return stop_and_go_on(campaign, "stop-twice", twice)


def stop_monitors(campaign):
    """As a cluster manager stops a job: every process hears it. Ranks and store leave it to the monitors."""
    def everybody(fleet):
        terminate(fleet)
        for pid in fleet.all_processes():
            kill(pid, signal.SIGTERM)
    return stop_and_go_on(campaign, "stop-monitors", everybody)


def stop_while_saving(campaign):
    """A persistent save takes 2 s longer than it would, and the signal comes meanwhile."""
    def while_saving(fleet):
        begun = lambda: any(event["event"] == "checkpoint_save" and event["phase"] == "begin" and event["step"] % 4 == 0
                            for event in fleet.events())
        wait_for("a save", begun)
        time.sleep(campaign.moments.uniform(0.1, 1.0))
        terminate(fleet)
    return stop_and_go_on(campaign, "stop-saving", while_saving, "checkpoint.before_manifest=sleep=2", interval=4)


def killed_after_3_seconds(campaign):
    """The grace is too short for the persistent save that the signal asks for: the last copy on the nodes is what remains."""
    fleet = campaign.fleet(campaign.new_name("stop-3s"), "checkpoint.before_manifest=sleep=20")
    try:
        fleet.start()
        fleet.wait_for_steps(5)
        terminate(fleet)
        time.sleep(3.0)
        fleet.kill_everything()
        if glob.glob(os.path.join(fleet.directory, "checkpoints", "step-*", "manifest.json")):
            raise Failure("the save was quicker than the grace: nothing is shown")
        reached, generation = fleet.best_step() + 1, fleet.generation()
        fleet.failpoints = fleet.failpoints.replace("checkpoint.before_manifest=sleep=20;", "")
        fleet.start()
        fleet.wait_for_generation(generation + 1)
        lost = reached - fleet.roster()["from_step"]
        if lost > 2:
            raise Failure(f"{lost} steps lost, at most 2 are allowed")
        fleet.wait_for_steps(3)
        campaign.stop_and_compare(fleet)
    finally:
        fleet.end()
    return {"lost": lost}


ROWS = {"stop": stop, "stop-twice": stop_twice, "stop-monitors": stop_monitors, "stop-saving": stop_while_saving,
        "stop-3s": killed_after_3_seconds}
