#!/usr/bin/env python3
"""Launches on a real Slurm cluster (scripts/slurm-local), where one can be made; exit code 77 and a sentence where not.

  tests/launch/slurm/slurm_test.py build/cpu/megalith [--accounting] [DRILL ...]        without names, nearly every drill

Each drill is a function below or in data_drills.py; every command has a time limit. --accounting: on a cluster that has sacct.
"""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

import published_test
from data_drills import drill_data, drill_data_ends, drill_data_fails, drill_data_names, drill_prepare
from real_cluster import PROFILE, PROGRAM, Cluster, Wrong, expect, expect_undisturbed, starts

SKIPPED = 77
# Of the cluster, where a drill needs more than 4; such drills run where they are named.
NODES = {"published": 32}


def drill_complete(cluster):
    """Submitted, followed, complete: the same bits as --nproc 4."""
    answer = cluster.launch("first", 20, "--check")
    expect("to start at" in answer, f"--check: {answer}")
    expect(not (cluster.folder / "first").exists(), "--check left something behind")
    expect("launched first on generic-slurm: job" in cluster.launch("first", 20), "not launched")
    refused = cluster.launch("first", 20, code=2)
    expect("first is" in refused and "launch stop first" in refused, refused)
    status = cluster.wait_for("first", "state     ended: complete")
    expect("step      20 of 20, loss" in status and "saved     step 20" in status, status)
    expect("start 1 on n[1-2]" in status and "end 1, exit code 0: complete" in status, status)
    expect("[3] " in cluster.megalith("launch", "logs", "first") or "[0] " in cluster.megalith("launch", "logs", "first"), "no log")
    expect("first" in cluster.megalith("launch", "list"), "not listed")
    expect_undisturbed(cluster, "first", 20)
    # Its script given to sbatch by hand: the launch has ended; and where that is forgotten, the run is complete.
    folder = cluster.folder / "first/launch/first"
    cluster.need("exec", "sbatch", "--wait", str(folder / "job.sh"))
    expect(starts(cluster.megalith("launch", "status", "first")) == 1, "a launch that has ended was started again")
    (folder / "ended").unlink()
    cluster.need("exec", "sbatch", "--wait", str(folder / "job.sh"))
    expect("end 2, exit code 0: complete" in cluster.megalith("launch", "status", "first"), "not complete by hand")
    expect_undisturbed(cluster, "first", 20)
    expect("nothing to launch" in cluster.launch("first", 20), "a complete run was launched again")
    difference = cluster.launch("first", 25, "--diff")
    expect("-  trainer.max_steps=20" in difference and "+  trainer.max_steps=25" in difference, difference)
    cluster.megalith("launch", "remove", "first")
    expect(not re.search("^first ", cluster.megalith("launch", "list"), re.MULTILINE), "not removed")


def drill_stop(cluster):
    """Stopped on request: saved, ended with 75, not started again."""
    cluster.launch("stopped", 100000)
    cluster.wait_for("stopped", "step      .*loss")
    cluster.megalith("launch", "stop", "stopped")
    status = cluster.wait_for("stopped", r"state     ended: stopped on request \(exit code 75\)")
    expect(re.search("saved     step [1-9]", status) and starts(status) == 1, status)


def drill_shell(cluster):
    """What the shell of a user holds for other launchers does not reach the job: the same bits."""
    shell = ["RANK=0", "WORLD_SIZE=1", "LOCAL_WORLD_SIZE=1", "JOB_COMPLETION_INDEX=0", "NNODES=1", "MEGALITH_STORE_SECRET=by-hand", "SBATCH_PARTITION=nope"]
    code, output = cluster.run("exec", "env", *shell, PROGRAM, "launch", "slurm", "--nodes", "2", *PROFILE, "--name", "shell", "--",
                               *cluster.training("shell", 20), "--nproc", "2")
    expect(code == 0, output)
    cluster.wait_for("shell", "state     ended: complete")
    expect_undisturbed(cluster, "shell", 20)


def drill_signal(cluster):
    """USR1, as Slurm sends it before the time limit: saved, requeued, complete, the same bits."""
    cluster.launch("signalled", 30, more=["resilience.failpoints=[train.step=delay]"])
    status = cluster.wait_for("signalled", "step      .*loss")
    job = re.search(r"running, job (\d+)", status)
    expect(job, f"it does not run: {status}")
    cluster.need("exec", "scancel", "--signal=USR1", job[1])
    status = cluster.wait_for("signalled", "state     ended: complete")
    expect(starts(status) == 2 and "exit code 75: stopped early, step" in status, status)
    expect_undisturbed(cluster, "signalled", 30)


def drill_crash(cluster):
    """Ranks that crash after progress: it goes on to its end, the same bits."""
    cluster.launch("crashing", 15, more=["resilience.failpoints=[train.step=exit@8]"])
    status = cluster.wait_for("crashing", "state     ended: complete")
    expect(starts(status) == 3 and "failed, step 5 saved" in status, status)
    expect_undisturbed(cluster, "crashing", 15)


def drill_crash_at_once(cluster):
    """Ranks that crash without progress: ended after one try."""
    cluster.launch("hopeless", 15, more=["resilience.failpoints=[train.step=exit@2]"])
    status = cluster.wait_for("hopeless", "state     ended: failed without a newer checkpoint")
    expect(starts(status) == 1, status)


def drill_fruitless(cluster):
    """75 twice in a row without a newer checkpoint ends the launch, and says so; 70 ends it at once."""
    tracker = cluster.folder / "fruitless/checkpoints/latest_checkpointed_iteration.txt"
    tracker.parent.mkdir(parents=True)
    program = cluster.folder / "stops"
    # The second start alone saves something.
    program.write_text(f"#!/bin/bash\n[[ $MEGALITH_GENERATION != 1 || $SLURM_PROCID != 0 ]] || echo 5 >{tracker}\nexit 75\n")
    program.chmod(0o755)
    cluster.launch("fruitless", 15, "--set", f"program={program}")
    status = cluster.wait_for("fruitless", r"state     ended: stopped early twice in a row without a newer checkpoint \(exit code 75\)")
    ends = re.findall(r"end \d, exit code 75: (.*)", status)
    nothing, saved = "stopped early, nothing saved", "stopped early, step 5 saved"
    expect(ends == [nothing, saved, nothing, "stopped early twice in a row without a newer checkpoint"] and starts(status) == 4, status)
    program.write_text("#!/bin/bash\nexit 70\n")
    cluster.launch("given-up", 15, "--set", f"program={program}")
    status = cluster.wait_for("given-up", r"state     ended: given up \(exit code 70\)")
    expect(starts(status) == 1, status)


def drill_bad_input(cluster):
    """A recipe that is gone when the job starts: exit code 2, never requeued."""
    cluster.launch("wrong", 15, "--set", "slurm.sbatch[0]=--begin=now+8")
    expect("waiting, job" in cluster.megalith("launch", "status", "wrong"), "it does not wait")
    (cluster.folder / "wrong/launch/wrong/gpt3-125m.yaml").unlink()
    status = cluster.wait_for("wrong", r"state     ended: the input is wrong, the log says what \(exit code 2\)")
    expect(starts(status) == 1, status)
    expect("gpt3-125m.yaml" in cluster.megalith("launch", "logs", "wrong"), "the log does not say what")


def drill_time_limit(cluster):
    """Slurm's time limit: saved before it, requeued, complete, the same bits."""
    cluster.launch("limited", 120, "--time", "2", more=["resilience.failpoints=[train.step=delay]"])
    status = cluster.wait_for("limited", "state     ended: complete", seconds=600)
    expect(starts(status) >= 2 and "exit code 75: stopped early, step" in status and "failed" not in status, status)
    expect_undisturbed(cluster, "limited", 120)


def lose(cluster, name, how, which, more=()):
    """A node of a run is lost: it ends on others, with the losses of an undisturbed run."""
    cluster.launch(name, 40, more=["resilience.failpoints=[train.step=delay]", *more])
    status = cluster.wait_for(name, r"saved     step [1-9]")
    nodes = re.search(r"start 1 on (\S+)", status)[1]
    node = cluster.need("exec", "scontrol", "show", "hostnames", nodes).split()[which]
    cluster.need(how, node)
    try:
        status = cluster.wait_for(name, "state     ended: complete", seconds=300)
    finally:
        cluster.need("heal", node)
        until = time.monotonic() + 60
        while len(set(cluster.need("exec", "sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split())) < 4 and time.monotonic() < until:
            time.sleep(0.5)
    expect(starts(status) == 2 and "step      40 of 40" in status, status)
    why = re.search(rf"end 1, exit code \d+: (failed, step \d+ saved|killed on {re.escape(nodes)}, as when a node is lost)\n", status)
    expect(why, f"nothing says how the first start ended:\n{status}")
    last = re.findall(r"start 2 on (\S+)", status)
    expect(last and node not in cluster.need("exec", "scontrol", "show", "hostnames", last[0]).split(), f"it came back on {node}:\n{status}")
    now = cluster.megalith("launch", "status", name)
    expect(starts(now) == 2 and "state     ended: complete" in now, f"once {node} was back it went on:\n{now}")
    expect_undisturbed(cluster, name, 40)


def drill_power(cluster):
    """Power loss of a node: on from the last checkpoint on another, the same bits."""
    lose(cluster, "dark", "fail", 1)


def drill_power_of_script(cluster):
    """Power loss of the node that runs the batch script: Slurm requeues by itself, the same bits."""
    lose(cluster, "darker", "fail", 0)


def drill_cable(cluster):
    """A pulled cable: what goes on behind it does no harm, the same bits."""
    lose(cluster, "cut", "cut", 1)


def drill_cable_of_script(cluster):
    """A pulled cable of the node that runs the batch script: the next start waits for what goes on there, the same bits."""
    # Long enough for Slurm to notice first.
    lose(cluster, "cutter", "cut", 0, more=["trainer.communication_timeout=120"])
    expect("the run is in use by process" in cluster.megalith("launch", "logs", "cutter"), "the second start did not wait")


def drill_superseded(cluster):
    """What a start says that was given up for lost, once another has begun, does not count."""
    program = cluster.folder / "lost"
    journal = cluster.folder / "lost-run/launch/lost-run/journal"
    program.write_text(f"#!/bin/bash\n[[ $SLURM_PROCID != 0 ]] || echo \"$(date +%FT%T%z) start 1 99 n9\" >>{journal}\nexit 2\n")
    program.chmod(0o755)
    cluster.launch("lost-run", 15, "--set", f"program={program}")
    status = cluster.wait_for("lost-run", "state     ended without a word on n9")
    expect("end 1" not in status and not (journal.parent / "ended").exists(), status)
    expect("start 1 was given up for lost, and another has begun (exit code 2)" in cluster.megalith("launch", "logs", "lost-run"), "it did not say so")


def drill_forgotten(cluster):
    """A batch script that is killed, and a job that squeue has forgotten: status still says what is known, with sacct and without."""
    cluster.launch("killed", 100000)
    status = cluster.wait_for("killed", "step      .*loss")
    job, nodes = re.search(r"running, job (\d+) on (\S+)", status).groups()
    first = cluster.need("exec", "scontrol", "show", "hostnames", nodes).split()[0]
    cluster.need("on", first, "pkill", "-KILL", "-f", f"job0*{job}/slurm_script")
    until = time.monotonic() + 150
    while cluster.run("exec", "squeue", "-h", "-t", "all", "-j", job)[1].split()[:1] == [job]:
        expect(time.monotonic() < until, f"squeue does not forget job {job}")
        time.sleep(1)
    status = cluster.megalith("launch", "status", "killed")
    word = "the cluster says [A-Z_]+" if cluster.accounting else "the cluster has forgotten the job"
    expect(re.search(rf"state     ended without a word on \S+: {word}", status) and "loss" in status, status)
    expect(re.search(rf"^killed +slurm +ended without a word on \S+: {word}", cluster.megalith("launch", "list"), re.MULTILINE), "list says something else")


DUMP = """#!/usr/bin/env python3
import json, os, sys
with open("dumped.json", "w") as file:
    json.dump([sys.argv[1:], dict(os.environ)], file)
"""


def random_values(count):
    """Texts that are hard to carry; none begins with '-', which would be an option."""
    alphabet = list(" \t\n'\"\\\\$`!&|;<>()*?[]{}~#%=,:") + ["ä", "漢", "🙂", "$HOME", "$(id)", "a", "B", "0", "\x7f", "\x01", "é"]
    chosen = random.Random(20)
    values = ["".join(chosen.choice(alphabet) for _ in range(chosen.randint(1, 40))) for _ in range(count)]
    return [value for value in values if not value.startswith("-")]


def drill_quoting(cluster):
    """1,000 random values reach the program unchanged through bash and srun in one job, as arguments and as variables."""
    program = cluster.folder / "dump"
    program.write_text(DUMP)
    program.chmod(0o755)
    values = [":", "", "a b", *random_values(500)]
    variables = {f"VALUE_{i}": value for i, value in enumerate(random_values(500))}
    profile = cluster.folder / "quoting.yaml"
    profile.write_text(json.dumps({"inherit": "generic-slurm", "gpus_per_node": 0, "program": str(program), "environment": variables}, ensure_ascii=False))
    cluster.megalith("launch", "slurm", "--cluster", str(profile), "--name", "quoting", "--", "data", "download", *values, "--output-dir", "x")
    cluster.wait_for("quoting", "state     ended: complete")
    arguments, environment = json.loads((cluster.folder / "dumped.json").read_text())
    expect(arguments == ["data", "download", *values, "--output-dir", "x"], "arguments changed on the way")
    changed = {name: (value, environment.get(name)) for name, value in variables.items() if environment.get(name) != value}
    expect(not changed, f"variables changed on the way: {changed}")
    refused = cluster.megalith("launch", "slurm", *PROFILE, "--set", "slurm.account=a\nb", "--name", "no", "--", "data", "download", "u",
                               "--output-dir", "x", code=2)
    expect("#SBATCH line cannot carry" in refused, refused)


def drill_secret(cluster):
    """While a job runs its secret is in its file alone, which no other user can read."""
    cluster.launch("private", 100000)
    cluster.wait_for("private", "step      .*loss")
    folder = cluster.folder / "private/launch/private"
    secret = (folder / "secret").read_bytes().strip()
    expect(len(secret) >= 32, "the secret is short")
    seen = 0
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                text = (process / name).read_bytes()
            except OSError:
                continue
            seen += str(folder).encode() in text
            expect(secret not in text, f"{process / name} holds the secret")
    expect(seen >= 4, f"only {seen} lists of arguments or variables name the launch: the ranks were not looked at")
    for file in [*cluster.folder.rglob("*")]:
        if file.is_file() and file != folder / "secret":
            expect(secret not in file.read_bytes(), f"{file} holds the secret")
    rendered = cluster.launch("private", 5, "--render")
    expect(secret.decode() not in rendered, "--render shows the secret")
    for word in (["scontrol", "show", "job", "--details"], ["scontrol", "write", "batch_script", "1", "-"]):
        expect(secret.decode() not in cluster.run("exec", *word)[1], f"{word[1]} shows the secret")
    for file in (folder / "secret", *(pathlib.Path("/proc") / str(os.getpid()) / "environ",)):
        denied = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", str(file)], capture_output=True, timeout=20)
        expect(denied.returncode != 0 and not denied.stdout, f"another user reads {file}")
    cluster.megalith("launch", "stop", "--now", "private")
    cluster.wait_for("private", r"state     ended: stopped on request \(exit code (75|130)\)")


def drill_partition(cluster):
    """A partition that the cluster lacks, or more nodes than it has: exit code 2, and the name is free again."""
    expect("invalid partition" in cluster.launch("nowhere", 5, "--set", "slurm.partition=nope", code=2), "an unknown partition was taken")
    expect("partition" in cluster.launch("nowhere", 5, "--set", "slurm.partition=nope", "--check", code=2), "--check takes an unknown partition")
    many = cluster.megalith("launch", "slurm", "--nodes", "64", *PROFILE, "--name", "many", "--check", "--",
                            *cluster.training("many", 5), "--nproc", "2", "model.global_batch_size=128", code=2)
    expect("Slurm would not take the job" in many, many)
    cluster.launch("nowhere", 5)
    cluster.wait_for("nowhere", "state     ended: complete")


def drill_unseen(cluster):
    """A run directory that the nodes do not see: the job's first line ends it with 2, and status asks the right question."""
    hidden = cluster.folder / "hidden"
    hidden.mkdir()
    nodes = ["n1", "n2", "n3", "n4"]
    for node in nodes:
        cluster.need("on", node, "mount", "-t", "tmpfs", "none", str(hidden))
    try:
        cluster.launch("unseen", 5, more=[f"exp_manager.explicit_log_dir={hidden}/run"])
        status = cluster.wait_for("unseen", r"state     ended before its first line: the cluster says FAILED; can the nodes see \S+\?")
        job = json.loads((hidden / "run/launch/unseen/launch.json").read_text())["ids"][0]
        expect("ExitCode=2:0" in cluster.need("exec", "scontrol", "show", "job", job), status)
    finally:
        for node in nodes:
            cluster.need("on", node, "umount", str(hidden))


def drill_chain(cluster):
    """--chain 3: each job goes on where the one before crashed, the same bits."""
    answer = cluster.launch("chained", 15, "--chain", "3", more=["resilience.failpoints=[train.step=exit@8]"])
    expect(re.search(r"job \d+, \d+, \d+", answer), answer)
    status = cluster.wait_for("chained", "state     ended: complete")
    expect(starts(status) == 3 and len(set(re.findall(r"job (\d+), start", status))) == 3, status)
    expect_undisturbed(cluster, "chained", 15)


def drill_published(cluster):
    """The published recipes of docs/launch.md, each asked of sbatch --test-only and submitted, held, with what it waits for."""
    lustre = published_test.Lustre(cluster.folder)
    for command in published_test.commands():
        words = published_test.shlex.split(lustre.here(command))[3:]
        for more in (["--check"], ["--set", "slurm.sbatch[0]=--hold"]):
            code, output = cluster.run("exec", "env", "-C", str(lustre.home), PROGRAM, "launch", "slurm", *more, *words)
            expect(code == 0 and ("to start at" in output or "launched" in output), f"{more[0]} of {command}: exit code {code}\n{output}")
    waits = cluster.need("exec", "squeue", "-h", "-o", "%j %E").splitlines()
    after = [line for line in waits if "afterok" in line]
    expect(len(after) == 3 + 3 + 2, f"not all wait for what they need: {waits}")


def drill_controller(cluster):
    """slurmctld gone while we ask: status says so and knows the run; then it ends as if nothing had been."""
    # Slow enough to be at work still when the controller has gone, whose end can take 10 s.
    cluster.launch("alone", 30, more=["resilience.failpoints=[train.step=sleep=1]"])
    cluster.wait_for("alone", "step      .*loss")
    cluster.need("controller", "stop")
    status = cluster.megalith("launch", "status", "alone")
    expect("unknown: squeue does not answer" in status and "loss" in status, status)
    expect(re.search("^alone +slurm +unknown: squeue does not answer", cluster.megalith("launch", "list"), re.MULTILINE), "list says something else")
    cluster.need("controller", "start")
    cluster.wait_for("alone", "state     ended: complete")
    expect_undisturbed(cluster, "alone", 30)


def main():
    drills = {name[len("drill_"):]: drill for name, drill in globals().items() if name.startswith("drill_")}
    words = sys.argv[2:]
    accounting = ["--accounting"] if "--accounting" in words else []
    wanted = [word for word in words if not word.startswith("--")] or [name for name in drills if name not in NODES]
    with tempfile.TemporaryDirectory(prefix="slurm-test-") as folder:
        cluster = Cluster(pathlib.Path(folder), bool(accounting))
        lacks = cluster.need("missing", *accounting)
        if lacks:
            print(f"skipped, since a Slurm cluster cannot be made here: {lacks.strip()}")
            return SKIPPED
        failures = 0
        try:
            nodes = max(NODES.get(name, 4) for name in wanted)
            cluster.need("start", "--nodes", str(nodes), *accounting, seconds=240)
            for name in wanted:
                begin = time.monotonic()
                try:
                    drills[name](cluster)
                    print(f"ok    {name}: {drills[name].__doc__} ({time.monotonic() - begin:.0f} s)", flush=True)
                except (Wrong, subprocess.TimeoutExpired) as wrong:
                    failures += 1
                    print(f"FAIL  {name}: {wrong}", flush=True)
        finally:
            cluster.run("stop", seconds=120)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
