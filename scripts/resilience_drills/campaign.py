"""Strikes fleets, row by row, and measures."""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import time

from checkpoint_drills.runs import CALLBACK, MODELS, Failure, Runs, names_of_difference
from layout_words import overrides_of

from . import cgroups, recoveries, restarts, scaling, stops, surroundings
from .cgroups import Skip
from .fleet import Fleet, GrowingLines
from .rows import PLANNED, ROWS

STEPS_PER_FAULT = 8  # at least so many are done between two faults
WARM_UP = 8  # steps, until deadlines are known
STEP_SECONDS = 0.3
SAVES = [f"{CALLBACK}local_every_n_train_steps=1", f"{CALLBACK}local_peer_copy=true", f"{CALLBACK}late_save=wait"]
SELDOM = 100000  # steps between persistent saves: there is none before the end
FAULTS_PER_FLEET = 15
# Every fault of the same kind is answered alike, so that no node is replaced that the next fault needs. The ladder itself is
# shown by the row "ladder", and by the simulation.
POLICY = "".join(f"{symptom}: [in_job_restart]\n" for symptom in
                 ("rank_ended", "call_failed", "store_ended", "rank_stuck", "all_wait", "livelock", "load_failed")) \
    + "start_failed: [workload_restart]\n"
STOPPED = 75

# Rows with fleets of their own. Each takes the campaign and the names that are due, and notes what it has shown.
ALONE = {}
for part in (recoveries, scaling, stops, surroundings, restarts):
    ALONE |= part.ROWS
NAMES = [*ROWS, *PLANNED, *ALONE]


class Campaign:
    def __init__(self, given, folder):
        self.given, self.folder = given, folder
        self.runs = Runs(given.program, folder)
        self.moments = random.Random(given.seed)
        self.lines = os.path.join(folder, "lines.jsonl")
        self.done = GrowingLines().of(self.lines)
        self.nodes, self.ranks_per_node = (int(word) for word in given.fleet.split("x"))
        self.policy = os.path.join(folder, "policy.yaml")
        with open(self.policy, "w") as file:
            file.write(POLICY)
        self.failed = 0
        self.began = time.monotonic()

    # What is known. Strikes count once the fleet that took them has ended with the right bits.

    def note(self, **line):
        self.done.append(line)
        with open(self.lines, "a") as file:
            file.write(json.dumps(line) + "\n")

    def fail(self, row, what, **line):
        self.failed += 1
        self.note(row=row, failure=str(what), **line)
        print(f"{row}: FAILED: {what}", flush=True)

    def good_lines(self, row=None):
        right = {line["fleet"] for line in self.done if line["row"] == "bits"}
        return [line for line in self.done if line["row"] not in ("bits", "goodput") and "failure" not in line
                and line.get("fleet") in (right | {None}) and row in (None, line["row"])]

    def times_due(self, row):
        times = 1 if self.given.fast or row in ALONE else self.given.repeat
        if row in ROWS and ROWS[row].is_frequent and not self.given.fast:
            times = max(times, self.given.frequent)
        return max(0, times - len(self.good_lines(row)))

    # Fleets.

    def fleet(self, name, failpoints="", spares=1, interval=SELDOM, size=None, overrides=(), step_seconds=STEP_SECONDS,
              climbs=False, is_mounted=False):
        """`interval`: steps from one persistent save to the next; `climbs`: the ladder as it is; `is_mounted`: the run
        directory is there already."""
        if not is_mounted:
            shutil.rmtree(self.runs.directory(name), ignore_errors=True)
        shutil.rmtree(self.runs.directory(name) + "-nodes", ignore_errors=True)
        size = size or self.given.fleet
        # Of the faults of a place the first that is due strikes.
        pad = f"train.step=sleep={step_seconds}"
        policy = [] if climbs else [f"resilience.policy={self.policy}"]
        return Fleet(self.runs, name, size, spares,
                     overrides=[*MODELS["gpt"].split(), *overrides_of(layout_of(size)), *SAVES, *policy,
                                f"resilience.goodput_log={self.goodput_log(name)}",
                                f"{CALLBACK}every_n_train_steps={interval}", *overrides],
                     failpoints=";".join(filter(None, [failpoints, pad])))

    def reference(self, steps, size):
        """Digests at the end of a run without supervisor, which nothing has disturbed."""
        name = f"reference-{size}-{steps}"
        checkpoint = self.runs.step(name, steps)
        if not os.path.exists(os.path.join(checkpoint, "manifest.json")):
            shutil.rmtree(self.runs.directory(name), ignore_errors=True)
            nodes, ranks_per_node = size.split("x")
            self.runs.train_well(name, layout_of(size), steps, [f"trainer.num_nodes={nodes}", f"trainer.devices={ranks_per_node}"])
        return self.runs.digests(checkpoint)

    def stop_and_compare(self, fleet, checkpoints=None):
        """`checkpoints`: where they are, if not in the run directory. Asks it to stop, and compares every tensor with an undisturbed run of as many steps."""
        fleet.process.send_signal(signal.SIGTERM)
        code = fleet.wait()
        if code != STOPPED:
            raise Failure(f"exit code {code} after SIGTERM, not {STOPPED}\n{fleet.last_words()}")
        steps = fleet.best_step() + 1
        last = os.path.join(checkpoints or os.path.join(fleet.directory, "checkpoints"), f"step-{steps:08}")
        different = names_of_difference(self.runs.digests(last),
                                        self.reference(steps, f"{fleet.nodes}x{fleet.ranks_per_node}"))
        if different:
            raise Failure(f"{len(different)} tensors are not those of an undisturbed run, {different[0]} first")
        self.note(row="bits", fleet=fleet.name, steps=steps, generations=fleet.generation(),
                  minutes=round((time.monotonic() - self.began) / 60, 1))
        print(f"{fleet.name}: after {steps} steps and {fleet.generation()} generations the bits of an undisturbed run", flush=True)

    def goodput_log(self, name):
        return self.runs.directory(name) + "-goodput.log"

    def compare_goodput(self, fleet):
        """The log that the supervisors wrote for Google's calculator gives the numbers that the run's own logs give."""
        numbers = []
        for log in (self.goodput_log(fleet.name), fleet.directory):
            exported = self.goodput_log(fleet.name) + ".json"
            report = subprocess.run([self.runs.program, "report", "goodput", log, "--reference-step-time", str(STEP_SECONDS),
                                     "--export", exported], capture_output=True, text=True)
            if report.returncode != 0:
                raise Failure(f"report goodput {log}: {report.stderr}")
            with open(exported) as file:
                numbers.append({key: value for key, value in json.load(file).items() if key != "wall_time"})
        # Sums of microseconds, from two beginnings.
        different = [key for key in numbers[1] if key not in numbers[0] or
                     (numbers[0][key] != numbers[1][key] if not isinstance(numbers[1][key], float)
                      else abs(numbers[0][key] - numbers[1][key]) > 1e-4 * abs(numbers[1][key]))]
        if different or not numbers[1]["checkpoints_saved"]:
            raise Failure(f"Google's log and events.jsonl differ in {different}: {numbers}")
        return {key: numbers[1][key] for key in ("job_started_count", "checkpoints_saved", "goodput_percentage")}

    def new_name(self, kind):
        return f"{kind}-{len(self.done)}"

    # What came of a fault.

    @staticmethod
    def measure(fleet, since, until=math.inf):
        """Of the journal between two moments. Steps that the old generation finished after the first, before the fault was
        felt, count as finished."""
        facts = [fact for fact in fleet.journal() if since <= fact["mono"] < until]
        faults = [fact for fact in facts if fact["kind"] == "fault"]
        claims = [fact for fact in facts if fact["kind"] == "claimed"]
        steps = fleet.steps_done()
        felt = claims[0]["mono"] if claims else since
        best = max((step for moment, step in steps if moment < felt), default=-1)
        new = [moment for moment, step in steps if step > best and moment >= felt]
        lost = 0
        if claims:
            rosters = {roster["generation"]: roster for roster in fleet.rosters()}
            lost = best + 1 - max(0, min(rosters[claim["about"]]["from_step"] for claim in claims))
        return {"generations": len(claims),
                "symptoms": sorted({fact["symptom"] for fact in faults}),
                "named": sorted({f"rank {rank}" for fact in faults for rank in fact.get("ranks", "").split(",") if rank}),
                "noticed": round(faults[0]["mono"] - since, 2) if faults else None,
                "next_step": round(min(new) - since, 2) if new else None,
                "lost": lost}

    def problems(self, bar, line, struck):
        if bar.restarts and line["generations"] < 1:
            yield "no generation followed"
        if not bar.restarts and line["generations"] != 0:
            yield f"{line['generations']} generations followed, although nothing that computes was hurt"
        if bar.symptoms and not set(bar.symptoms) & set(line["symptoms"]):
            yield f"the journal names {line['symptoms']}, none of {list(bar.symptoms)}"
        if bar.is_named and line["named"] != [struck]:
            yield f"{struck} was struck, and {line['named']} named"
        if line["lost"] > bar.most_lost:
            yield f"{line['lost']} steps lost, at most {bar.most_lost} are allowed"
        if bar.restarts and line["next_step"] is None:
            yield "no new step followed"
        if not self.is_timed() or not bar.restarts:
            return
        if line["noticed"] is None or line["noticed"] > bar.noticed:
            yield f"noticed after {line['noticed']} s, not {bar.noticed}"
        if line["next_step"] is not None and line["next_step"] > bar.done:
            yield f"next step after {line['next_step']} s, not {bar.done}"

    def is_timed(self):
        return not self.given.fast and not self.given.untimed

    def judge(self, row, bar, fleet, struck, line):
        problems = list(self.problems(bar, line, struck))
        if problems:
            return self.fail(row, f"{struck}: {'; '.join(problems)}", fleet=fleet.name, struck=struck, **line)
        self.note(row=row, fleet=fleet.name, struck=struck, **line)
        print(f"{row}: {struck}, {line}", flush=True)

    # Rows that share fleets.

    def strike_in_turn(self, names):
        due = [name for name in names for _ in range(self.times_due(name)) if ROWS[name].least_nodes <= self.nodes]
        for name in names:
            if ROWS[name].least_nodes > self.nodes:
                print(f"{name}: skipped, it takes {ROWS[name].least_nodes} nodes")
        self.moments.shuffle(due)
        while due:
            self.strike_fleet(due[:FAULTS_PER_FLEET])
            due = due[FAULTS_PER_FLEET:]

    def strike_fleet(self, due):
        fleet = self.fleet(self.new_name("struck"), spares=2 if "two-nodes" in due else 1)
        try:
            fleet.start()
            fleet.wait_for_steps(WARM_UP)
            for name in due:
                self.strike(fleet, name)
            fleet.wait_for_steps(2)
            self.stop_and_compare(fleet)
            self.note(row="goodput", fleet=fleet.name, **self.compare_goodput(fleet))
        except (Failure, AssertionError) as failure:
            self.fail("struck", failure, fleet=fleet.name)
        finally:
            fleet.end()
            cgroups.leave("memory")

    def strike(self, fleet, name):
        row = ROWS[name]
        fleet.wait_for_steps(self.moments.randint(2, STEPS_PER_FAULT - 2))
        time.sleep(self.moments.uniform(0.0, STEP_SECONDS))
        before, generation = time.monotonic(), fleet.generation()
        try:
            struck = row.inject(fleet, self.moments)
        except Skip as skip:
            print(f"{name}: skipped, {skip}", flush=True)
            return
        if row.restarts:
            fleet.wait_for_generation(generation + 1)
        fleet.wait_for_steps(2)
        line = self.measure(fleet, before)
        row.after(fleet, struck)
        # Then nothing that was needed came from there.
        if fleet.persistent_steps():
            raise Failure(f"the persistent tier holds steps {fleet.persistent_steps()}, though none was to be saved")
        self.judge(name, row, fleet, struck, line)

    def plan_in_turn(self, names):
        due = [name for name in names for _ in range(self.times_due(name))]
        self.moments.shuffle(due)
        while due:
            self.plan_fleet(due[:FAULTS_PER_FLEET])
            due = due[FAULTS_PER_FLEET:]

    def plan_fleet(self, due):
        # One that asks for a load cannot be the first.
        due = sorted(due, key=lambda name: PLANNED[name].asks_for_a_load) if PLANNED[due[0]].asks_for_a_load else due
        failpoints, faults = [], []
        generation, step = 1, WARM_UP
        if PLANNED[due[0]].asks_for_a_load:
            failpoints.append(f"train.step=abort@rank=0,step={step},generation=1")
            generation, step = 2, 2 * WARM_UP
        for name in due:
            rank = self.moments.randrange(self.nodes * self.ranks_per_node)
            for text in PLANNED[name].failpoints:
                failpoints.append(text.format(at=f"rank={rank},step={step},generation={generation}", rank=rank, step=step,
                                              generation=generation))
                generation += 1
            faults.append((name, rank, step, generation - 1))
            step += STEPS_PER_FAULT + self.moments.randint(0, 3)
        fleet = self.fleet(self.new_name("planned"), ";".join(failpoints), interval=WARM_UP // 2)
        try:
            fleet.start()
            for _, _, step, _ in faults:
                fleet.wait_for(f"step {step + 3}", lambda: fleet.best_step() >= step + 3)
            # Until what leads to the next one strikes.
            ends = [self.moment_of(fleet, fault, 0) for fault in faults[1:]] + [math.inf]
            for fault, end in zip(faults, ends):
                name, rank, _, _ = fault
                self.judge(name, PLANNED[name], fleet, f"rank {rank}", self.measure(fleet, self.moment_of(fleet, fault, -1), end))
            self.stop_and_compare(fleet)
        except Failure as failure:
            self.fail("planned", f"{failpoints}: {failure}", fleet=fleet.name)
        finally:
            fleet.end()

    @staticmethod
    def moment_of(fleet, fault, which):
        """When its first failpoint struck, or its last one (-1), as the rank wrote it down; else when the step began."""
        name, rank, step, generation = fault
        failpoints = PLANNED[name].failpoints
        place = failpoints[which].split("=")[0]
        moment = fleet.struck_at(generation if which else generation - len(failpoints) + 1, rank, place)
        if moment is None:
            moment = max((moment for moment, done in fleet.steps_done() if done < step), default=None)
        if moment is None:
            raise Failure(f"{name} has not struck rank {rank} in step {step} of generation {generation}")
        return moment

    # Rows with fleets of their own.

    def run_alone(self, names):
        for name in names:
            if not self.times_due(name):
                continue
            began = time.monotonic()
            try:
                line = ALONE[name](self) or {}
            except Skip as skip:
                print(f"{name}: skipped, {skip}", flush=True)
                continue
            except (Failure, AssertionError) as failure:
                self.fail(name, failure)
                continue
            self.note(row=name, **line, took=round(time.monotonic() - began, 1))
            print(f"{name}: as it should{', ' if line else ''}{', '.join(f'{key} {line[key]}' for key in line)}", flush=True)


def layout_of(size):
    nodes, ranks_per_node = (int(word) for word in size.split("x"))
    return f"TP2 DP{nodes * ranks_per_node // 2}"


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def print_table(campaign):
    print("\n| row | times | noticed p50 / p95 / worst | next step p50 / p95 / worst | steps lost |", "|---" * 5 + "|", sep="\n")
    for name in NAMES:
        of_row = campaign.good_lines(name)
        if not of_row:
            continue
        columns = []
        for key in ("noticed", "next_step"):
            values = [line[key] for line in of_row if line.get(key) is not None]
            columns.append(" / ".join(f"{value:.1f}" for value in (percentile(values, 0.5), percentile(values, 0.95), max(values)))
                           if values else "-")
        lost = [line["lost"] for line in of_row if "lost" in line]
        print(f"| {name} | {len(of_row)} | {columns[0]} | {columns[1]} | {max(lost) if lost else '-'} |")


def run(given, names, folder):
    campaign = Campaign(given, folder)
    campaign.strike_in_turn([name for name in names if name in ROWS])
    campaign.plan_in_turn([name for name in names if name in PLANNED])
    campaign.run_alone([name for name in names if name in ALONE])
    print_table(campaign)
    print(f"\n{campaign.failed} failures, {(time.monotonic() - campaign.began) / 60:.1f} minutes")
    return 1 if campaign.failed else 0
