"""Faults within a recovery, and recoveries that end otherwise."""

import collections
import signal
import time

from checkpoint_drills.runs import Failure

from .fleet import kill, wait_for

GAVE_UP = 70
IN_ALL = 40.0  # seconds, where a fault follows another
NEXT_NOTICED = 5.0

# A phase of a recovery begins, for whoever sees the journal alone, when it has so many lines of this kind and order:
# "all": one of every node that is heard, "members": one of every node that has ranks.
PHASES = {
    "gather": ("fault", None, 1),
    "stop": ("tick", None, 1),
    "place": ("order_done", "kill", 1),
    "claim": ("holdings", None, "all"),
    "start": ("claimed", None, 1),
    "join": ("order_done", "start", "members"),
    "load": ("joined", None, 1),
    "redo": ("loaded", None, 1),
}
# Each line holds the supervisor for a moment, and ranks take their time to meet and to load: long enough to strike.
SLOWLY = ";".join([f"journal.{kind}=sleep=0.4" for kind in sorted({kind for kind, _, _ in PHASES.values()})]
                  + ["launch.start=sleep=0.5", "train.load=sleep=0.5"])


def new_facts(fleet, since):
    return [fact for fact in fleet.journal() if fact["mono"] >= since]


def has_begun(fleet, phase, since):
    kind, order, count = PHASES[phase]
    lines = [fact for fact in new_facts(fleet, since) if fact["kind"] == kind and order in (None, fact.get("order"))]
    if phase == "stop":  # a tick before the fault's line belongs to something else
        faults = [fact["mono"] for fact in new_facts(fleet, since) if fact["kind"] == "fault"]
        lines = [fact for fact in lines if faults and fact["mono"] > faults[0]]
    needed = {"all": fleet.nodes + fleet.spares, "members": fleet.nodes}.get(count, count)
    return len(lines) >= needed


def next_fault(campaign):
    """A rank is killed, and then, once in each phase of the recovery, a node is lost."""
    fleet = campaign.fleet(campaign.new_name("next-fault"), SLOWLY)
    worst = {"noticed": 0.0, "next_step": 0.0, "lost": 0}
    try:
        fleet.start()
        for phase in PHASES:
            line = next_fault_in(campaign, fleet, phase)
            worst = {key: max(worst[key], line[key] or 0.0) for key in worst}
        campaign.stop_and_compare(fleet)
    finally:
        fleet.end()
    return worst


def next_fault_in(campaign, fleet, phase):
    fleet.wait_for_steps(4)
    rank = campaign.moments.randrange(fleet.nodes * fleet.ranks_per_node)
    others = [node["node"] for node in fleet.roster()["nodes"] if node["node"] != fleet.node_of(rank)]
    node = campaign.moments.choice(others)
    generation, first = fleet.generation(), time.monotonic()
    kill(fleet.rank(rank), signal.SIGKILL)
    fleet.wait_for(f"phase {phase}", lambda: has_begun(fleet, phase, first))
    second = time.monotonic()
    fleet.lose_nodes(node)

    def is_replaced():
        roster = fleet.roster()
        return roster["generation"] > generation and node not in [member["node"] for member in roster["nodes"]]
    fleet.wait_for(f"a roster without {node}", is_replaced)
    fleet.wait_for_steps(2)
    line = campaign.measure(fleet, first)
    silent = [fact["mono"] - second for fact in new_facts(fleet, second)
              if fact["kind"] in ("silent", "fault") and fact["mono"] > second]
    line["noticed"] = round(min(silent), 2) if silent else None
    roster = fleet.roster()
    units = roster["in_job_restarts"] + roster["workload_restarts"]
    print(f"next-fault in {phase}: rank {rank}, then {node}, {line}, {units} units of budgets", flush=True)
    if units > 1:
        raise Failure(f"a fault in {phase} has cost {units} units of budgets, not one")
    if line["lost"] > 2:
        raise Failure(f"a fault in {phase} has cost {line['lost']} steps, at most 2 are allowed")
    if campaign.is_timed() and (line["next_step"] > IN_ALL or (line["noticed"] or 0.0) > NEXT_NOTICED):
        raise Failure(f"a fault in {phase} was noticed after {line['noticed']} s, not {NEXT_NOTICED}, and took "
                      f"{line['next_step']} s in all, not {IN_ALL}")
    fleet.bring_back(node)
    return line


# The supervisor dies at every line of a swap's journal, before anything follows from the line.

def take_over_with(fleet, failpoint=""):
    """A supervisor that begins its term by hearing of every node."""
    if fleet.process.poll() is None:
        fleet.kill_supervisor()
    pad = fleet.failpoints
    fleet.failpoints = ";".join(filter(None, [failpoint, pad]))
    began = time.monotonic()
    fleet.take_over()
    fleet.failpoints = pad
    heard = fleet.nodes + fleet.spares
    fleet.wait_for("all nodes", lambda: sum(fact["kind"] == "heard" for fact in new_facts(fleet, began)) >= heard)
    fleet.wait_for_steps(3)


def lines_of_swap(fleet, began):
    """(kind, which of its kind in the term) of each line from the first fault to the first new step."""
    counted, lines = collections.Counter(), []
    for fact in new_facts(fleet, began):
        counted[fact["kind"]] += 1
        if fact["kind"] in ("fault", "silent") or lines:
            lines.append((fact["kind"], counted[fact["kind"]]))
        if lines and fact["kind"] == "progress":
            break
    return lines


def lose_a_member(campaign, fleet):
    node = fleet.node_of(campaign.moments.randrange(fleet.nodes * fleet.ranks_per_node))
    fleet.lose_nodes(node)
    return node


def expect_one_start(fleet, generation):
    if fleet.generation() != generation:
        raise Failure(f"generation {fleet.generation()} was reached, one swap leads to {generation}")
    starts = [event for event in fleet.events() if event["event"] == "job_started" and event["generation"] == generation]
    if len(starts) != 1:
        raise Failure(f"generation {generation} was started {len(starts)} times")


def supervisor_lines(campaign):
    fleet = campaign.fleet(campaign.new_name("supervisor-lines"))
    reached = 0
    try:
        fleet.start()
        fleet.wait_for_steps(6)
        began = time.monotonic()
        take_over_with(fleet)
        generation = fleet.generation()
        node = lose_a_member(campaign, fleet)
        fleet.wait_for_generation(generation + 1)
        fleet.wait_for_steps(2)
        lines = lines_of_swap(fleet, began)
        fleet.bring_back(node)
        for kind, number in lines:
            reached += die_at_line(campaign, fleet, kind, number)
        campaign.stop_and_compare(fleet)
    finally:
        fleet.end()
    if reached < 0.8 * len(lines):
        raise Failure(f"only {reached} of {len(lines)} lines were reached")
    return {"lines": len(lines), "died": reached}


def die_at_line(campaign, fleet, kind, number):
    """Whether that swap had such a line: the order in which nodes answer differs."""
    take_over_with(fleet, f"journal.{kind}=exit@{number}")
    generation, before = fleet.generation(), time.monotonic()
    node = lose_a_member(campaign, fleet)
    has_died = lambda: fleet.process.poll() is not None
    wait_for(f"line {kind} {number}, or the swap", lambda: has_died() or
             any(fact["kind"] == "progress" for fact in new_facts(fleet, before)))
    died = has_died()
    if died:
        fleet.take_over()
    fleet.wait_for_generation(generation + 1)
    fleet.wait_for_steps(2)
    expect_one_start(fleet, generation + 1)
    # Else the next supervisor would die at a line that is still this swap's.
    fleet.wait_for("the swap's last line", lambda: any(fact["kind"] == "progress" and fact["about"] == generation + 1
                                                       for fact in new_facts(fleet, before)))
    line = campaign.measure(fleet, before)
    print(f"supervisor dies at {kind} {number}: {'' if died else 'there was no such line, '}{line}", flush=True)
    if line["lost"] > 2 or line["generations"] != 1:
        raise Failure(f"killed at its line {kind} {number}: {line}")
    fleet.bring_back(node)
    return died


def ladder(campaign):
    """The same node thrice: restarted, restarted after checks, replaced for good."""
    fleet = campaign.fleet(campaign.new_name("ladder"), climbs=True)
    try:
        fleet.start()
        node = None
        for times in range(3):
            fleet.wait_for_steps(4)
            began, generation = time.monotonic(), fleet.generation()
            node = node or fleet.node_of(0)
            rank = next(member["index"] for member in fleet.roster()["nodes"] if member["node"] == node) * fleet.ranks_per_node
            kill(fleet.rank(rank), signal.SIGKILL)
            fleet.wait_for_generation(generation + 1)
            fleet.wait_for_steps(2)
            checked = any(fact["kind"] == "checked" for fact in new_facts(fleet, began))
            stays = node in [member["node"] for member in fleet.roster()["nodes"]]
            if (checked, stays) != [(False, True), (True, True), (True, False)][times]:
                raise Failure(f"rank killed on {node} for the {times + 1}. time: nodes {'' if checked else 'not '}checked, "
                              f"it {'stays' if stays else 'is replaced'}")
        campaign.stop_and_compare(fleet)
    finally:
        fleet.end()


def owner_and_copy(campaign):
    """A node and the next one, which keeps its copies: on with what the persistent tier holds, and the run says so."""
    fleet = campaign.fleet(campaign.new_name("owner-and-copy"), spares=2, interval=6)
    try:
        fleet.start()
        fleet.wait_for("a persistent save", lambda: any(event["event"] == "checkpoint_saved" and event["step"] >= 6
                       and event["fields"].get("tier") == "persistent" for event in fleet.events()))
        fleet.wait_for("3 steps after a save", lambda: fleet.best_step() % 6 == 3)
        before = time.monotonic()
        first = campaign.moments.randrange(fleet.nodes)
        nodes = [fleet.roster()["nodes"][index % fleet.nodes]["node"] for index in (first, first + 1)]
        generation = fleet.generation()
        fleet.lose_nodes(*nodes)
        fleet.wait_for_generation(generation + 1)
        fleet.wait_for_steps(2)
        line = campaign.measure(fleet, before)
        step = fleet.roster()["from_step"]
        if step < 6 or step % 6 != 0:
            raise Failure(f"it goes on from step {step}, which the persistent tier does not hold")
        with open(fleet.output, errors="replace") as file:
            said = [text for text in file if "persistent" in text and str(step) in text]
        if not said:
            raise Failure(f"nobody says that step {step} comes from the persistent tier")
        if campaign.is_timed() and (line["noticed"] > 5.0 or line["next_step"] > 20.0):
            raise Failure(f"noticed after {line['noticed']} s, next step after {line['next_step']} s")
        fleet.bring_back(*nodes)
        campaign.stop_and_compare(fleet)
    finally:
        fleet.end()
    return {key: line[key] for key in ("noticed", "next_step", "lost")}


def crash_always(campaign):
    fleet = campaign.fleet(campaign.new_name("crash-always"), "train.step=abort@step=0,rank=1", climbs=True)
    try:
        fleet.start()
        code = fleet.wait()
        if code != GAVE_UP:
            raise Failure(f"exit code {code}, not {GAVE_UP}\n{fleet.last_words()}")
        if len(fleet.rosters()) > 5:
            raise Failure(f"{len(fleet.rosters())} starts, 5 are allowed")
        for words in ("rank 1", "step 0"):
            if words not in fleet.last_words():
                raise Failure(f"{words} is not named\n{fleet.last_words()}")
        return {"starts": len(fleet.rosters())}
    finally:
        fleet.end()


ROWS = {"next-fault": next_fault, "supervisor-lines": supervisor_lines, "ladder": ladder, "owner-and-copy": owner_and_copy,
        "crash-always": crash_always}
