#!/usr/bin/env python3
"""Launches on Kubernetes without a cluster: against a small API server behind a stand-in for kubectl (api_server.py).

  tests/launch/kubernetes/kubernetes_test.py build/cpu/megalith [DRILL ...]        without names, every drill

What this cannot show: that a real scheduler, kubelet and network do what the manifests ask of them.
"""
import difflib
import fcntl
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from api_server import ApiServer, NAMESPACE, read_manifests

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parents[2]
PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
GOLDEN = REPOSITORY / "tests/launch/golden"
HELM = next((str(path) for path in [REPOSITORY / "build/helm/helm", shutil.which("helm")] if path and pathlib.Path(path).exists()), None)
IMAGE = "image=registry/megalith@sha256:" + "1f" * 32
RUN = ["train", "-c", "recipes/gpt3-125m.yaml", "--nproc", "2", "trainer.accelerator=cpu"]


def claim(at=0):
    """The storage of the runs, as the mount of this number."""
    return ["--set", IMAGE, "--set", f"mounts[{at}].claim=runs,mounts[{at}].target=/runs"]


class Wrong(Exception):
    pass


class Skipped(Exception):
    pass


def expect(condition, what):
    if not condition:
        raise Wrong(what)


def expect_parts(text, *parts):
    for part in parts:
        expect(part in text, f"no '{part}' in:\n{text}")


class Home:
    """A folder to launch from, with kubectl and its cluster."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "recipes").symlink_to(REPOSITORY / "recipes")
        (folder / "bin").mkdir()
        (folder / "bin/kubectl").symlink_to(HERE / "kubectl")
        self.api = ApiServer()
        self.environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "KUBECTL_API": self.api.address,
                            "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "config")}
        self.environment.pop("JOB_COMPLETION_INDEX", None)

    def megalith(self, *words, code=0, seconds=60, errors=True, variables=None):
        done = subprocess.run([PROGRAM, *words], cwd=self.folder, env={**self.environment, **(variables or {})}, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT if errors else subprocess.PIPE, timeout=seconds)
        said = (done.stdout + (done.stderr or ""))[-2000:]
        expect(done.returncode == code, f"exit code {done.returncode} where {code} was expected of: megalith {' '.join(words)[:1000]}\n{said}")
        return done.stdout

    def launch(self, name, *options, nodes=2, mount=0, code=0, more=(), **how):
        return self.megalith("launch", "kubernetes", "--nodes", str(nodes), *claim(mount), "--name", name, *options, "--", *RUN,
                             f"exp_manager.explicit_log_dir=/runs/{name}", *more, code=code, **how)

    def render(self, name, *options, more=(), **how):
        return read_manifests(self.launch(name, "--render", *options, more=more, errors=False, **how))

    def status(self, name):
        return self.megalith("launch", "status", name)

    def follow(self, name, *options):
        """`launch logs -f`, in the background; what it printed comes from its join()."""
        return subprocess.Popen([PROGRAM, "launch", "logs", "-f", *options, name], cwd=self.folder, env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def container_of(objects):
    spec = next(each for each in objects if each["kind"] in ("Job", "JobSet"))["spec"]
    spec = spec["replicatedJobs"][0]["template"]["spec"] if "replicatedJobs" in spec else spec
    return spec["template"]["spec"]["containers"][0]


def drill_complete(home):
    """Submitted, followed, complete, forgotten; launched twice only after its end; removed."""
    api = home.api
    expect_parts(home.launch("first", "--check"), "configmap/first-1 created (server dry run)", "job.batch/first-1")
    expect(not api.objects and not (home.folder / "runs").exists(), "--check left something behind")
    expect_parts(home.launch("first"), "launched first on generic-kubernetes: job jobs.batch/first-1", "launch logs -f first")
    expect(sorted(kind for kind, _ in api.objects) == ["ConfigMap", "Job", "NetworkPolicy", "Secret", "Service"], f"{api.objects.keys()}")
    expect_parts(home.status("first"), "waiting, job first-1: pod first-1-0-00001 starts")
    expect_parts(home.launch("first", code=2), "first is waiting", "launch stop first")
    api.run("first-1")
    expect_parts(home.status("first"), "running, job first-1 on n0, n1")
    following = home.follow("first")
    api.log("first-1", 0, "[0] hello from 0", "[1] hello from 1")
    api.log("first-1", 1, "[2] hello from 2", "[3] hello from 3")
    expect_parts(home.status("first"), "log       [1] hello from 1\n")
    expect(home.megalith("launch", "logs", "--rank", "3", "first") == "[3] hello from 3\n", "not the lines of rank 3")
    expect_parts(home.megalith("launch", "logs", "--rank", "4", "first", code=2), "4 ranks", "no rank 4")
    api.exit("first-1", 0, 0)
    api.exit("first-1", 1, 0)
    expect(following.communicate(timeout=30)[0] == "[0] hello from 0\n[1] hello from 1\n", "not what the first pod printed")
    expect_parts(home.status("first"), "state     ended: complete (exit code 0)", "job first-1-0-00001, start 1 on n0",
                 "job first-1-0-00001, end 1, exit code 0: complete")
    api.forget("first-1")
    expect_parts(home.status("first"), "state     ended: complete (exit code 0)")
    expect_parts(home.megalith("launch", "list"), "first  kubernetes  ended: complete")
    expect_parts(home.megalith("launch", "logs", "first", code=2), "forgotten the pods of first", "nemo_log_globalrank-0")
    expect_parts(home.launch("first"), "job jobs.batch/first-2")
    api.forget("first-2")
    expect_parts(home.status("first"), "state     ended: the cluster has forgotten the job")
    home.megalith("launch", "remove", "first")
    expect(not [name for _, name in api.objects if name == "first-2"], f"left behind: {api.objects.keys()}")
    expect_parts(home.megalith("launch", "list"), "there are no launches")


def drill_again(home):
    """75 and evictions start again without being counted; other codes are counted, to the limit."""
    api = home.api
    home.launch("again", "--set", "kubernetes.max_restarts=1")
    for start in range(3):
        api.run("again-1")
        api.exit("again-1", 0, 75)
        api.exit("again-1", 1, 75)
        expect_parts(home.status("again"), "waiting", "stopped early (exit code 75)", f", start {start + 1} on n0",
                     f", end {start + 1}, exit code 75: stopped early")
    api.run("again-1", "m")
    api.exit("again-1", 1, 143, evicted="preempted by another")
    expect_parts(home.status("again"), "running, job again-1 on m0; 1 of 2 pods run", "on m1 was ended: evicted, preempted by another")
    expect(api.job("again-1")["status"].get("failed", 0) == 0, "75 or an eviction was counted")
    for _ in range(3):
        api.run("again-1")
        api.exit("again-1", 1, 134)
    expect_parts(home.status("again"), "ended: failed: Job has reached the specified backoff limit", "on n1 failed with exit code 134",
                 "(exit code 134)", ", start 4 on m0")


def drill_mistake(home):
    """2 and 70 end a launch at once."""
    for code, words in ((2, "the input is wrong, the log says what"), (70, "given up")):
        home.launch(f"mistake{code}")
        home.api.run(f"mistake{code}-1")
        home.api.exit(f"mistake{code}-1", 1, code)
        expect_parts(home.status(f"mistake{code}"), f"state     ended: {words} (exit code {code})")
        made = home.api.made
        home.api.exit(f"mistake{code}-1", 0, code)
        expect(home.api.made == made + 1, "a pod was made after the end")  # the exit's own time


def drill_jobset(home):
    """A JobSet in a queue: let in, restarted as a whole with a new generation, ended by 2 and by too many failures."""
    api = home.api
    set_ = ["--set", "kubernetes.object=jobset", "--set", "kubernetes.max_restarts=1", "--set", "kubernetes.queue=q"]
    for check in ([], ["--check"]):
        expect_parts(home.launch("set", *set_, *check, code=2), "no local queue 'q' (kubernetes.queue)", "not found")
    expect(not api.objects, f"left behind: {api.objects.keys()}")
    api.queues.append("q")
    home.launch("set", *set_)
    api.workloads.append({"metadata": {"ownerReferences": [{"name": "set-1"}]}, "status": {"conditions": [
        {"type": "QuotaReserved", "status": "False", "message": "couldn't assign flavors: insufficient quota"}]}})
    expect_parts(home.status("set"), "waiting, job set-1: couldn't assign flavors: insufficient quota")
    api.admit("set-1")
    generation = next(each for each in container_of([api.job("set-1")])["env"] if each["name"] == "MEGALITH_GENERATION")
    expect("restart-attempt" in generation["valueFrom"]["fieldRef"]["fieldPath"], f"{generation}")
    for code in (75, 75, 1):
        api.run("set-1")
        api.exit("set-1", 0, code)
    expect(api.job("set-1")["status"] == {"failed": 1, "restarts": 3, "restartsCountTowardsMax": 1}, f"{api.job('set-1')['status']}")
    api.run("set-1")
    expect_parts(home.status("set"), "running, job set-1 on n0, n1; 3 restarts")
    api.exit("set-1", 1, 2)
    expect_parts(home.status("set"), "ended: the input is wrong, the log says what (exit code 2)")
    home.launch("often", *set_)
    api.admit("often-1")
    for _ in range(2):
        api.run("often-1")
        api.exit("often-1", 0, 9)
    expect_parts(home.status("often"), "ended: failed: jobset failed", "often-1-workload-0-0", "failed with exit code 9")


def drill_stop(home):
    """Stopped: the pods have their time to save, nothing starts again; `--now` ends them at once."""
    api = home.api
    home.launch("stopped")
    api.run("stopped-1")
    expect_parts(home.megalith("launch", "stop", "stopped"), "asked to save and end")
    expect_parts(home.status("stopped"), "running, job stopped-1 on n0, n1, asked to stop")
    expect_parts(home.megalith("launch", "remove", "stopped", code=2), "stop it first")
    api.finish_deletion("stopped-1")
    expect_parts(home.status("stopped"), "state     ended: stopped on request (exit code 75)")
    home.launch("now")
    api.run("now-1")
    home.megalith("launch", "stop", "--now", "now")
    expect(any("--grace-period=1" in call for call in api.calls), "no pod was ended at once")
    expect_parts(home.status("now"), "state     ended: stopped on request (exit code 75)")


def drill_follow(home):
    """`logs -f` goes on with the pod that follows, to the end."""
    api = home.api
    home.launch("long")
    api.run("long-1")
    following = home.follow("long")
    api.log("long-1", 0, "first start")
    time.sleep(0.5)
    api.exit("long-1", 0, 75)
    api.exit("long-1", 1, 75)
    api.run("long-1")
    api.log("long-1", 0, "second start")
    time.sleep(3)
    api.log("long-1", 0, "last line")
    api.exit("long-1", 0, 0)
    api.exit("long-1", 1, 0)
    printed = following.communicate(timeout=30)[0]
    expect(printed == "first start\nsecond start\nlast line\n", f"logs -f printed {printed!r}")


def drill_unreachable(home):
    """A cluster that does not answer: said, and nothing forgotten."""
    home.launch("far")
    home.api.close()
    expect_parts(home.status("far"), "state     unknown: kubectl get jobs.batch/far-1: Unable to connect to the server")
    expect_parts(home.megalith("launch", "list"), "unknown: kubectl")
    expect_parts(home.megalith("launch", "remove", "far", code=5), "Unable to connect")
    expect_parts(home.status("far"), "far-1")


def drill_refused(home):
    """What the cluster refuses leaves nothing behind; what others made stays."""
    api = home.api
    del api.kinds["jobsets.jobset.x-k8s.io"]
    expect_parts(home.launch("lost", "--set", "kubernetes.object=jobset", code=2), "the cluster refused it", 'no matches for kind "JobSet"')
    expect(not api.objects, f"left behind: {api.objects.keys()}")
    home.launch("ours")
    before = dict(api.objects)
    shutil.rmtree(home.folder / "runs")
    shutil.rmtree(home.folder / "state")
    expect_parts(home.launch("ours", code=2), "already exists", "give another --name")
    expect(api.objects == before, "the objects of the other launch were touched")


def drill_secret(home):
    """The secret is in the Secret's manifest on kubectl's standard input and nowhere else."""
    rendered = home.launch("quiet", "--render")
    values = home.launch("quiet", "--values")
    home.launch("quiet")
    secret = home.api.objects["Secret", "quiet-1"]["stringData"]["secret"]
    expect(re.fullmatch("[0-9a-f]{64}", secret), "not 32 bytes")
    home.launch("other")
    expect(home.api.objects["Secret", "other-1"]["stringData"]["secret"] != secret, "the same secret twice")
    expect(not any(secret in word for call in home.api.calls for word in call), "the secret is in an argument")
    expect(sum(secret in text for text in home.api.inputs) == 1, "the secret was handed over more than once")
    for text in (rendered, values, *(path.read_text() for path in home.folder.rglob("*") if path.is_file() and not path.is_symlink())):
        expect(secret not in text, "the secret is in a rendering or a file")
    expect(not list(home.folder.rglob("secret")), "the launch folder holds a file for a secret")
    container = container_of(home.render("quiet"))
    expect({"name": "MEGALITH_STORE_SECRET_FILE", "value": "/etc/megalith-secret/secret"} in container["env"], "no file for the secret")
    expect_parts(home.megalith("launch", "kubernetes", "--make-secret", "mine"), f"made the Secret mine in namespace {NAMESPACE}")
    expect(re.fullmatch("[0-9a-f]{64}", home.api.objects["Secret", "mine"]["stringData"]["secret"]), "--make-secret: not 32 bytes")
    home.launch("theirs", "--set", "kubernetes.existing_secret=mine")
    expect(("Secret", "theirs-1") not in home.api.objects, "a second Secret was made")


def drill_bad_input(home):
    """Exit code 2 and what to do."""
    def refused(*options, parts, name="bad", **how):
        expect_parts(home.launch(name, *options, code=2, **how), *parts)
    refused(name="x" * 60, parts=["would be called " + "x" * 60 + "-1-1-xxxxx", "a host name takes 63", "--name"])
    refused("--set", "kubernetes.topology.required=a", "--set", "kubernetes.topology.preferred=b",
            parts=["`kubernetes.topology.required` and `kubernetes.topology.preferred` are both given", "=null"])
    refused("--set", "kubernetes.que=a", parts=["did you mean `kubernetes.queue`?"])
    refused("--set", "image=null", parts=["has no `image`"])
    refused("--set", "mounts[0].claim=null", parts=["one of `source` (a path of the node), `claim` and `bucket`, and has 0"])
    refused("--set", "kubernetes.host_network=true", parts=["`kubernetes.host_network_reason`"])
    refused("--set", "kubernetes.privileged=true", parts=["the container megalith has more rights", "privileged", "privilege_reasons.megalith"])
    refused("--set", "kubernetes.user=0", parts=["does not run as root"])
    refused("--set", "kubernetes.init_containers[0].name=pump,kubernetes.init_containers[0].securityContext.capabilities.add[0]=SYS_ADMIN",
            parts=["the container pump has more rights than it needs by default (SYS_ADMIN)"])
    refused("--set", "mounts[1].claim=runs,mounts[1].target=data", parts=["'data' is no absolute path"])
    refused(nodes=3, more=["model.tensor_model_parallel_size=4"], parts=["6 ranks"])
    refused(more=["exp_manager.explicit_log_dir=/elsewhere/run"], parts=["not on storage that the pods see", "mounts[0].claim"])
    refused(variables={"PATH": "/nowhere"}, parts=["there is no kubectl here"])
    refused(variables={"JOB_COMPLETION_INDEX": "0"}, parts=["inside of a Job"])
    gate = ["--set", "kubernetes.scheduling_gate=gke.io/topology-aware-auto-x", "--set", "kubernetes.gate_daemon=topology-scheduler"]
    for check in ([], ["--check"]):
        refused(*gate, *check, parts=["nothing in kube-system mentions topology-scheduler", "kubernetes.scheduling_gate=null"])
    home.api.daemons = "topology-scheduler"
    expect_parts(home.launch("bad", *gate, "--check"), "the cluster would take it")
    expect_parts(home.launch("bad", "--set", "image=megalith:latest", "--render"), "named by a tag")
    expect_parts(home.megalith("launch", "kubernetes", code=2), "command")
    expect(not home.api.objects, "something was submitted")


def drill_storage(home):
    """A claim that this machine sees holds the launch's folder; the journal of the pods is read from there."""
    seen = home.folder / "seen"
    seen.mkdir()
    home.launch("near", "--set", f"mounts[0].seen_at={seen}")
    folder = seen / "near/launch/near"
    expect(sorted(path.name for path in folder.iterdir()) == ["gpt3-125m.yaml", "launch.json", "lock", "manifests.yaml", "profile.yaml"],
           f"{list(folder.iterdir())}")
    job = home.api.objects["ConfigMap", "near-1"]["data"]["job.sh"].replace("/runs/near", str(seen / "near"))
    run_pod(job, 0, ["true"])
    home.api.forget("near-1")
    expect_parts(home.status("near"), "state     ended: complete (exit code 0)", "start 1 on node-0", "end 1, exit code 0: complete")
    expect("launch=/runs/near/launch/near\n" in home.render("near", "--set", f"mounts[0].seen_at={seen}")[0]["data"]["job.sh"], "another folder")


def run_pod(script, index, command, signal_after=None):
    """Runs job.sh as a pod would: its exit code."""
    pod = subprocess.Popen(["bash", "-c", script, "job.sh", *command], env={**os.environ, "HOSTNAME": f"near-1-{index}", "NODE_NAME": f"node-{index}",
                                                                           "JOB_COMPLETION_INDEX": str(index), "NNODES": "2"}, stdout=subprocess.PIPE)
    if signal_after:
        time.sleep(signal_after)
        pod.send_signal(signal.SIGTERM)
    output = pod.communicate(timeout=30)[0].decode()
    return pod.returncode, output


def drill_pod(home):
    """What a pod runs: arguments as they are, signals handed on, exit codes and the journal."""
    folder = home.folder / "pod"
    folder.mkdir()
    job = home.render("near")[0]["data"]["job.sh"].replace("launch=/runs/near/launch/near-1", f"launch={folder / 'launch'}")
    odd = ["a b", "'\"", "$HOME $(x) `y`", "line\nend", "ü\u2028"]
    code, output = run_pod(job, 0, ["printf", "%s\\0", *odd])
    expect(code == 0 and output.split("\0")[:-1] == odd, f"{code} {output!r}")
    saves = "trap 'exit 75' TERM; for i in {1..100}; do sleep 0.1; done"
    expect(run_pod(job, 0, ["bash", "-c", saves], signal_after=0.7)[0] == 75, "the answer to a signal was lost")
    expect(run_pod(job, 1, ["bash", "-c", "sleep 0.2"])[0] == 0, "pod 1")
    expect(run_pod(job, 0, ["bash", "-c", "exit 2"])[0] == 2, "exit code 2 was lost")
    # The first pod waits for what is still at work on the run, the others for the first.
    lock = folder / "run/.megalith.lock"
    lock.parent.mkdir()
    job = job.replace("lock=/runs/near/.megalith.lock", f"lock={lock}")
    lock.write_text("process 7 on node-9\n")
    with open(lock) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        expect(run_pod(job, 1, ["true"])[0] == 0, "pod 1 waits")
        code, output = run_pod(job, 0, ["echo", "never"], signal_after=0.5)
        expect(code == 75 and "in use by process 7 on node-9" in output and "never" not in output, f"{code} {output!r}")
        threading.Timer(1, fcntl.flock, (held, fcntl.LOCK_UN)).start()
        code, output = run_pod(job, 0, ["bash", "-c", "exit 2"])
        expect(code == 2, f"{code} {output!r}")
    lines = [line.split(" ", 1)[1] for line in (folder / "launch/journal").read_text().splitlines()]
    expect(lines == ["start 0 near-1 node-0", "end 0 near-1 0 complete", "start 1 near-1 node-0", "end 1 near-1 75 stopped early",
                     "start 2 near-1 node-0", "end 2 near-1 2 the input is wrong, the log says what",
                     "start 3 near-1 node-0", "end 3 near-1 2 the input is wrong, the log says what"], f"{lines}")


SMALL_GPT = ("trainer.cpu_threads=1 trainer.limit_val_batches=0 trainer.enable_progress_bar=false model.num_layers=2 model.hidden_size=32 "
             "model.ffn_hidden_size=64 model.num_attention_heads=2 model.encoder_seq_length=32 model.global_batch_size=8 "
             "model.tensor_model_parallel_size=2 trainer.max_steps=20").split()


def losses(run):
    found = {}
    for line in (run / "dllogger/rank-0/dllogger.json").read_text().splitlines():
        record = json.loads(line.removeprefix("DLLL "))
        if "reduced_train_loss" in record.get("data", {}):
            found[record["step"]] = record["data"]["reduced_train_loss"]
    return found


def start_pod(objects, index, folder):
    """A process in place of a pod: its arguments and variables, with its mounts in this folder."""
    def here(text):
        for mount in ("/etc/megalith-secret", "/etc/megalith", "/runs"):
            text = re.sub(f"(^|[=\\s]){mount}(/|$)", rf"\1{folder}{mount}\2", text)
        return text
    files = folder / "etc/megalith"
    if not files.exists():
        files.mkdir(parents=True)
        for name, text in objects[0]["data"].items():
            (files / name).write_text(here(text))
    container = container_of(objects)
    variables = {each["name"]: here(expanded(each["value"])) for each in container["env"] if "value" in each}
    variables.update(MASTER_ADDR="127.0.0.1", JOB_COMPLETION_INDEX=str(index), NODE_NAME=f"node-{index}", HOSTNAME=f"run-1-{index}")
    with open(folder / f"pod-{index}.log", "a") as log:
        return subprocess.Popen([here(word) for word in container["command"]] + [here(expanded(word)) for word in container["args"]],
                                env={**os.environ, **variables}, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def drill_train(home):
    """The pods of a launch train together; one is evicted, all save, and those that follow go on to the same losses."""
    if b"gloo" not in subprocess.run(["ldd", PROGRAM], stdout=subprocess.PIPE).stdout:
        raise Skipped("this build has no Gloo")
    (home.folder / "runs").mkdir()
    secret = home.folder / "etc/megalith-secret/secret"
    secret.parent.mkdir(parents=True)
    secret.touch(mode=0o600)
    secret.write_text("few know it\n")
    port = 20000 + os.getpid() % 20000
    objects = home.render("run", "--set", f"kubernetes.port={port}", "--set", f"program={PROGRAM}", more=SMALL_GPT)
    undisturbed = home.folder / "alone"
    home.megalith("train", "-c", "recipes/gpt3-125m.yaml", "trainer.accelerator=cpu", *SMALL_GPT, "--nproc", "4", f"exp_manager.explicit_log_dir={undisturbed}")

    def run_all(evict=False):
        pods = [start_pod(objects, index, home.folder) for index in range(2)]
        if evict:
            until = time.monotonic() + 60
            log = home.folder / "runs/run/dllogger/rank-0/dllogger.json"
            while time.monotonic() < until and not (log.exists() and "reduced_train_loss" in log.read_text()):
                time.sleep(0.02)
            pods[1].send_signal(signal.SIGTERM)
        try:
            return [pod.wait(timeout=120) for pod in pods]
        except subprocess.TimeoutExpired:
            for pod in pods:
                pod.send_signal(signal.SIGTERM)
            text = "".join((home.folder / f"pod-{index}.log").read_text()[-2000:] for index in range(2))
            raise Wrong(f"the pods did not end:\n{text}")

    codes = run_all(evict=True)
    text = (home.folder / "pod-0.log").read_text()[-2000:] + (home.folder / "pod-1.log").read_text()[-2000:]
    expect(codes == [75, 75], f"the pods ended with {codes}:\n{text}")
    codes = run_all()
    text = (home.folder / "pod-0.log").read_text()[-2000:]
    expect(codes == [0, 0], f"the pods that follow ended with {codes}:\n{text}")
    expect(len(losses(undisturbed)) == 20 and losses(home.folder / "runs/run") == losses(undisturbed), "other losses than those of an undisturbed run")
    journal = [line.split(" ", 1)[1] for line in (home.folder / "runs/run/launch/run-1/journal").read_text().splitlines()]
    expect(journal == ["start 0 run-1 node-0", "end 0 run-1 75 stopped early", "start 1 run-1 node-0", "end 1 run-1 0 complete"], f"{journal}")
    expect(run_all() == [0, 0], "a run that is complete did not end with 0 when it was started again")


def drill_workers(home):
    """Workers share by the index of their pod, and need no secret."""
    words = ["launch", "kubernetes", "--nodes", "3", "--ranks-per-node", "2", *claim(), "--name", "work", "--render", "--", "data", "extract", "--input",
             "/runs/*.zst", "--output-dir", "/runs/out"]
    objects = read_manifests(home.megalith(*words, errors=False))
    job = next(each for each in objects if each["kind"] == "Job")
    expect(job["spec"]["completions"] == 6, "not one pod for each worker")
    expect("megalith-secret" not in json.dumps(job), "a secret nobody needs")
    script = objects[0]["data"]["job.sh"]
    expect("launch=''" in script, "a folder that no pod sees")
    expect(run_pod(script, 1, ["printf", "%s "])[1] == "--worker 1/2 ", "not its share")


def drill_same_bytes(home):
    """The same input gives the same bytes; --diff tells what changed since the last launch."""
    expect(home.launch("same", "--render") == home.launch("same", "--render"), "two renderings differ")
    home.launch("same")
    home.api.exit("same-1", 0, 0)
    difference = home.launch("same", "--diff", "--set", "kubernetes.port=7000")
    expect_parts(difference, '-          value: "6002"', '+          value: "7000"')
    begin = time.monotonic()
    home.launch("big", "--render", nodes=1000, more=["model.global_batch_size=4000"])
    expect(time.monotonic() - begin < 1, "1,000 nodes took more than a second")


def documented(word):
    """The command of docs/launch.md with this word, without the program's name."""
    text = (REPOSITORY / "docs/launch.md").read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.startswith("megalith launch kubernetes") and word in line]
    expect(len(lines) == 1, f"{len(lines)} commands with {word} in docs/launch.md")
    return shlex.split(lines[0])[1:]


def drill_seeds(home):
    """The lines of docs/launch.md for the seeds, rendered: as they were."""
    for name, word in (("000", "gke-a3-mega"), ("003", "gke-a3-ultra")):
        words = documented(word)
        at = words.index("--")
        rendered = home.megalith(*words[:at], "--render", *words[at:], errors=False)
        golden = GOLDEN / f"kubernetes-seed-{name}.yaml"
        if "MEGALITH_UPDATE_GOLDEN" in os.environ:
            golden.write_text(rendered)
        expect(rendered == golden.read_text(), f"{golden.name} has changed: MEGALITH_UPDATE_GOLDEN=1 writes it anew")


def helm(*words, cwd):
    done = subprocess.run([HELM, *words], cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    expect(done.returncode == 0, f"helm {' '.join(words)}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def as_json(home, text):
    """What Helm's own reader finds in manifests."""
    chart = home.folder / "reader"
    (chart / "templates").mkdir(parents=True, exist_ok=True)
    (chart / "Chart.yaml").write_text("{apiVersion: v2, name: reader, version: 1.0.0}\n")
    (chart / "manifests").write_text(text)
    (chart / "templates/list.yaml").write_text(
        '{{- range (regexSplit "(?m)^---$" (.Files.Get "manifests") -1) }}{{- with fromYaml . }}\n---\n{{ toJson . }}{{- end }}{{- end }}\n')
    output = helm("template", "reader", str(chart), cwd=home.folder)
    objects = [json.loads(line) for line in output.split("\n") if line.startswith("{")]
    return {(each["kind"], each["metadata"]["name"]): each for each in objects if each.get("kind")}


def kubernetes_profiles():
    return [path.stem for path in sorted((REPOSITORY / "recipes/clusters").glob("*.yaml"))
            if "kind: kubernetes" in path.read_text() or "inherit: generic-kubernetes" in path.read_text()]


def both_ways(home, name, *options, **how):
    """The objects of a launch, and those of the chart, as Helm reads them."""
    options = [*options, "--set", "kubernetes.existing_secret=mine"]
    rendered = home.launch(name, *options, "--render", errors=False, **how)
    (home.folder / "values.yaml").write_text(home.launch(name, *options, "--values", errors=False, **how))
    chart = helm("template", name, str(REPOSITORY / "charts/megalith"), "--values", "values.yaml", cwd=home.folder)
    return as_json(home, rendered), as_json(home, chart)


def expect_same(launched, made, what):
    expect(launched.keys() == made.keys(), f"{what}: launch makes {list(launched)}, the chart {list(made)}")
    for name, each in launched.items():
        lines = [json.dumps(one, indent=1, sort_keys=True).splitlines() for one in (each, made[name])]
        difference = "\n".join(difflib.unified_diff(*lines, "launch", "chart", n=2, lineterm=""))
        expect(not difference, f"{what}: {name} differs\n{difference}")


def need_helm():
    if not HELM:
        raise Skipped("there is no Helm here (scripts/install-deps --helm)")


def drill_helm(home):
    """The chart is clean, and makes the same objects as launch for every profile."""
    need_helm()
    chart = str(REPOSITORY / "charts/megalith")
    expect_parts(helm("lint", "--strict", chart, cwd=home.folder), "0 chart(s) failed")
    queue = ["--set", "kubernetes.queue=q"]
    launches = [(profile, []) for profile in kubernetes_profiles()]
    launches += [("gke-a3-mega", [*queue, "--set", "kubernetes.max_run_seconds=7000000,kubernetes.user=1000650000"]),
                 ("gke-a3-ultra", [*queue, "--set", "kubernetes.priority_class=low"]),
                 ("gke-a3-mega", ["--set", "kubernetes.host_network=true,kubernetes.host_network_reason=x,kubernetes.labels.team=a"]),
                 ("generic-kubernetes", ["--set", "kubernetes.nodes={n1,n2},kubernetes.node_selector.pool=h100,kubernetes.resources.memory=1Ti,"
                                                  "kubernetes.annotations.a/b=x: y"])]
    for profile, more in launches:
        launched, made = both_ways(home, "run", "--cluster", profile, *more, mount=int(profile.startswith("gke")))
        expect_same(launched, made, f"{profile} {more}")
        expect_parts(helm("lint", "--strict", chart, "--values", "values.yaml", cwd=home.folder), "0 chart(s) failed")
    text = (home.folder / "values.yaml").read_text()
    (home.folder / "values.yaml").write_text(text + "nodez: 3\n")
    done = subprocess.run([HELM, "template", "run", chart, "--values", "values.yaml"], cwd=home.folder, text=True, capture_output=True)
    expect(done.returncode != 0 and "nodez" in done.stderr, f"an unknown value passed: {done.stderr}")


def expanded(text):
    """As the kubelet reads an argument whose references it knows: $$ is a dollar, $(NAME) a variable."""
    return re.sub(r"\$\$|\$\((\w+)\)", lambda found: "$" if found[0] == "$$" else "replaced", text)


def random_values(count):
    pieces = [" ", "'", '"', "$", "$$", "$(MASTER_ADDR)", "`", "\\", "\n", "\t", "\r", ":", "#", "- ", "{{", "}}", "ü", "字", "\u0085", "\u2028", "\ufeff",
              "\U0001f600", "a", "null", "1e3", "0x1f", "~", "yes", "|", ">", "&", "*", "!", "%", "@", "=", ",", "[", "]", "\x01"]  # Helm cannot carry DEL
    chosen = random.Random(20)
    return ["".join(chosen.choices(pieces, k=chosen.randint(1, 12))) for _ in range(count)]


def drill_quoting(home):
    """1,000 random values reach the program and its variables unchanged, through YAML, Helm and what a pod runs."""
    values = random_values(1000)
    words = [f"name=x{value}" for value in values]  # a key that takes any text
    profile = json.dumps({"inherit": "generic-kubernetes", "environment": {f"V{i}": v for i, v in enumerate(values)}}, ensure_ascii=False)
    (home.folder / "odd.yaml").write_text(re.sub("[\x7f\u0085\u2028\ufeff]", lambda found: f"\\u{ord(found[0]):04x}", profile))
    options = ["--cluster", "odd.yaml"]
    objects = home.render("odd", *options, more=words)
    containers = [container_of(objects)]
    if HELM:
        launched, made = both_ways(home, "odd", *options, more=words)
        containers += [container_of(launched.values()), container_of(made.values())]
    for container in containers:
        arguments = [expanded(word) for word in container["args"]]
        expect(arguments[0:2] == ["megalith", "train"] and [word for word in arguments if word.startswith("name=x")] == words, "an argument has changed")
        variables = {each["name"]: expanded(each["value"]) for each in container["env"] if "value" in each}
        changed = [value for i, value in enumerate(values) if variables[f"V{i}"] != value]
        expect(not changed, f"variables have changed: {changed[:3]}")
    printed = run_pod(objects[0]["data"]["job.sh"], 0, ["printf", "%s\\0", *words])[1]
    expect(printed.split("\0")[:-1] == words, "what a pod runs has changed an argument")
    need_helm()


def drill_rbac(home):
    """With the rights of --rbac everything works, and each of them is needed."""
    api = home.api
    for options in ([], ["--set", "kubernetes.object=jobset", "--set", "kubernetes.queue=q"]):
        role = read_manifests("---\n" + home.megalith("launch", "kubernetes", "--rbac", *options))[0]
        api.role = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
        api.used.clear()
        api.queues = ["q"]
        home.launch("least", *options, "--check")
        used = set(api.used)
        expect_parts(home.launch("least", "--set", "kubernetes.scheduling_gate=g,kubernetes.gate_daemon=d", *options, "--check"),
                     "the cluster would take it", "whether d lifts the gate g cannot be seen", "Forbidden")
        api.used = used
        home.launch("least", *options)
        expect_parts(home.status("least"), "waiting")
        api.admit("least-1") if options else None
        api.run("least-1")
        api.log("least-1", 0, "hello")
        expect(home.megalith("launch", "logs", "least") == "hello\n", "no log")
        home.megalith("launch", "stop", "--now", "least")
        expect_parts(home.status("least"), "stopped on request")
        home.megalith("launch", "remove", "least")
        expect(not api.objects, f"left behind: {api.objects.keys()}")
        expect(api.used == api.role, f"given and not needed: {api.role - api.used}; needed and not given: {api.used - api.role}")


def main():
    drills = {name.removeprefix("drill_"): body for name, body in globals().items() if name.startswith("drill_")}
    failures = 0
    for name in sys.argv[2:] or drills:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            home = Home(pathlib.Path(folder))
            try:
                drills[name](home)
                print(f"ok       {name}: {drills[name].__doc__} ({time.monotonic() - begin:.1f} s)", flush=True)
            except Skipped as why:
                print(f"skipped  {name}, in part or whole: {why}", flush=True)
            except (Wrong, subprocess.TimeoutExpired, KeyError, AttributeError) as wrong:
                failures += 1
                print(f"FAIL     {name}: {wrong!r}" if not isinstance(wrong, Wrong) else f"FAIL     {name}: {wrong}", flush=True)
            finally:
                home.api.http.shutdown()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
