"""Nodes are lost and no spare is left: fewer replicas go on, and all of them again once the nodes are back."""

import itertools
import signal

from checkpoint_drills.runs import Failure, names_of_difference

STOPPED = 75
RANKS = 2  # of a node, and of a replica
WAITS = ["resilience.workload_downtime_threshold_s=3", "resilience.scale_up_after_s=3"]
NEAR = 1e-4  # of a loss: each layout adds up in its own order


def replicas_of(fleet):
    return len(fleet.roster()["nodes"])


def losses_of(events):
    return {event["step"]: event["fields"]["reduced_train_loss"] for event in events
            if event["event"] == "metrics" and event["fields"].get("kind", "train") == "train"}


def train_by_hand(campaign, name, legs, batch):
    """Stopped at the end of each leg, (replicas, steps), and continued on the next one's layout."""
    for replicas, steps in legs:
        campaign.runs.train_well(name, f"TP{RANKS} DP{replicas}", steps,
                                 [f"trainer.num_nodes={replicas}", f"trainer.devices={RANKS}", *batch])


def compare(campaign, fleet, batch):
    rosters, steps = fleet.rosters(), fleet.best_step() + 1
    ends = [roster["from_step"] for roster in rosters[1:]] + [steps]
    legs = [(len(roster["nodes"]), end) for roster, end in zip(rosters, ends)]
    name = fleet.name + "-by-hand"
    train_by_hand(campaign, name, legs, batch)
    different = names_of_difference(campaign.runs.digests(campaign.runs.step(fleet.name, steps)),
                                    campaign.runs.digests(campaign.runs.step(name, steps)))
    if different:
        raise Failure(f"{len(different)} tensors are not those of a run continued by hand, {legs}; {different[0]} first")
    name = fleet.name + "-undisturbed"
    train_by_hand(campaign, name, [(fleet.nodes, steps)], batch)
    expected, seen = campaign.runs.losses(name), losses_of(fleet.events())
    worst = max(abs(seen[step] - expected[step]) / expected[step] for step in range(steps))
    if worst > NEAR:
        raise Failure(f"a loss is {worst:.1e} off that of an undisturbed run")
    return legs, worst


def scale_down_and_up(campaign, batch, fewer):
    batch = [f"model.global_batch_size={batch}", "model.micro_batch_size=1"]
    fleet = campaign.fleet(campaign.new_name("scale"), spares=0, size=f"4x{RANKS}", overrides=[*WAITS, *batch])
    try:
        fleet.start()
        fleet.wait_for_steps(5)
        node = fleet.node_of(campaign.moments.randrange(4 * RANKS))
        fleet.lose_nodes(node)
        fleet.wait_for(f"{fewer} replicas", lambda: replicas_of(fleet) == fewer)
        fleet.wait_for_steps(5)
        fleet.bring_back(node)
        fleet.wait_for("4 replicas", lambda: replicas_of(fleet) == 4)
        fleet.wait_for_steps(4)
        fleet.process.send_signal(signal.SIGTERM)
        if (code := fleet.wait()) != STOPPED:
            raise Failure(f"exit code {code} after SIGTERM, not {STOPPED}\n{fleet.last_words()}")
        legs, worst = compare(campaign, fleet, batch)
    finally:
        fleet.end()
    steps = [0] + [end for _, end in legs]
    if [replicas for replicas, _ in legs] != [4, fewer, 4] or any(a >= b for a, b in itertools.pairwise(steps)):
        raise Failure(f"replicas and steps were {legs}")
    done = {event["step"] for event in fleet.events() if event["event"] == "metrics" and event.get("generation") == 2}
    if max(done) + 1 != legs[1][1]:
        raise Failure(f"the planned move has lost steps: {max(done) + 1} were done, and it went on from {legs[1][1]}")
    return {"legs": " ".join(f"{replicas}@{end}" for replicas, end in legs), "loss": f"{worst:.1e}"}


def scale(campaign):
    """4 replicas, 3, and 4 again."""
    return scale_down_and_up(campaign, 12, 3)


def scale_to_half(campaign):
    """A batch of 8 cannot be divided among 3 replicas."""
    return scale_down_and_up(campaign, 8, 2)


ROWS = {"scale": scale, "scale-to-half": scale_to_half}
