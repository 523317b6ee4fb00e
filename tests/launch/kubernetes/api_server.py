"""A small API server for the tests, with controllers for Jobs and JobSets that keep to the policies in their manifests.

It knows what `megalith launch` asks of kubectl, and refuses what it does not know. Pods do nothing by themselves: a test says
when they run, how they exit and what they print.
"""
import http.server
import json
import re
import threading
import time

CONTEXT, NAMESPACE = "tests", "team"
INDEX = "batch.kubernetes.io/job-completion-index"
KINDS = {"configmap": "ConfigMap", "service": "Service", "secret": "Secret", "networkpolicy.networking.k8s.io": "NetworkPolicy",
         "job.batch": "Job", "jobset.jobset.x-k8s.io": "JobSet"}
RESOURCES = {"configmaps": "ConfigMap", "services": "Service", "secrets": "Secret", "networkpolicies.networking.k8s.io": "NetworkPolicy",
             "jobs.batch": "Job", "jobsets.jobset.x-k8s.io": "JobSet"}


class Refused(Exception):
    pass


# The YAML that megalith writes: blocks, literal texts, words and texts in double quotes.

def read_scalar(text):
    if text in ("{}", "[]") or text[0] == '"' or re.fullmatch("-?[0-9]+|true|false|null", text):
        return json.loads(text)
    return text


class ManifestReader:
    def __init__(self, text):
        self.lines = [line for line in text.split("\n")]
        self.at = 0

    def indent(self):
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1
        if self.at == len(self.lines):
            return -1
        line = self.lines[self.at]
        return len(line) - len(line.lstrip(" "))

    def block(self, indent):
        return self.items(indent) if self.lines[self.at][indent:].startswith("-") else self.members(indent)

    def members(self, indent):
        found = {}
        while self.indent() == indent and not self.lines[self.at][indent:].startswith("- "):
            key, rest = re.fullmatch(r'("(?:[^"\\]|\\.)*"|[^"][^:]*):(?: (.*))?', self.lines[self.at][indent:]).groups()
            self.at += 1
            found[read_scalar(key)] = self.value(rest, indent)
        return found

    def items(self, indent):
        found = []
        while self.indent() == indent and self.lines[self.at][indent:].startswith("-"):
            rest = self.lines[self.at][indent + 2:]
            if re.match(r'("(?:[^"\\]|\\.)*"|[\w./-]+):( |$)', rest):
                self.lines[self.at] = " " * (indent + 2) + rest
                found.append(self.members(indent + 2))
            else:
                self.at += 1
                found.append(self.value(rest, indent))
        return found

    def value(self, rest, indent):
        if rest and rest in ("|", "|-"):
            return self.literal(indent + 2, "\n" if rest == "|" else "")
        if rest:
            return read_scalar(rest)
        return self.block(self.indent())

    def literal(self, indent, end):
        text = []
        while self.at < len(self.lines) and (not self.lines[self.at].strip(" ") or self.lines[self.at].startswith(" " * indent)):
            text.append(self.lines[self.at][indent:])
            self.at += 1
        while text and not text[-1]:
            text.pop()
        return "\n".join(text) + end


def read_manifests(text):
    if text.startswith("{"):
        return [json.loads(text)]
    documents = re.split(r"^---\n", text, flags=re.MULTILINE)[1:]
    return [ManifestReader(document).block(0) for document in documents]


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class ApiServer:
    """Its `calls` are all words that kubectl was given; `inputs` what it was given to read."""

    def __init__(self):
        self.objects, self.pods, self.logs = {}, {}, {}
        self.calls, self.inputs = [], []
        self.kinds = dict(RESOURCES)
        self.queues, self.workloads, self.daemons = [], [], ""
        self.role, self.used = None, set()  # rights as (resource, verb); None: all
        self.made = 0
        self.lock = threading.RLock()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()

                def send(text):
                    self.wfile.write(json.dumps(text).encode() + b"\n")
                    self.wfile.flush()
                code, errors = server.answer(question["words"], question["input"], send)
                self.wfile.write(b"END " + json.dumps([code, errors]).encode() + b"\n")

            def log_message(self, *_):
                pass
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    # What kubectl answers.

    def answer(self, words, text, send):
        self.calls.append(words)
        self.inputs.append(text)
        options = dict(re.fullmatch("--([a-z-]+)(?:=(.*))?", word).groups() for word in words if word.startswith("--"))
        plain = [word for word in words if not word.startswith("--")]
        if plain[0] == "config":
            send(CONTEXT + "\n" if plain[1] == "current-context" else NAMESPACE)
            return 0, ""
        asks = "dry-run" in options or (plain[0] == "get" and plain[1].split("/")[0] not in ("pods", *RESOURCES))
        if not asks and (options.get("context"), options.get("namespace")) != (CONTEXT, NAMESPACE):
            return 1, f"without the context and namespace of the launch: {words}\n"
        try:
            if plain[0] == "logs":
                self.print_log(plain[1], "follow" in options, int(options.get("tail", 0)), send)
            else:
                with self.lock:
                    getattr(self, plain[0])(plain[1:], options, text, send)
            return 0, ""
        except Refused as refused:
            return 1, f"Error from server {refused}\n"

    def need(self, resource, *verbs):
        for verb in verbs:
            self.used.add((resource.partition(".")[0], verb))
            if self.role is not None and (resource.partition(".")[0], verb) not in self.role:
                raise Refused(f"(Forbidden): {resource} is forbidden: user cannot {verb} resource")

    def create(self, _, options, text, send):
        dry = "dry-run" in options
        for manifest in read_manifests(text):
            kind, name = manifest["kind"], manifest["metadata"]["name"]
            if kind not in self.kinds.values():
                raise Refused(f'(NotFound): no matches for kind "{kind}" in version "{manifest["apiVersion"]}"')
            self.need(next(resource for resource, known in self.kinds.items() if known == kind), "create")
            if (kind, name) in self.objects:
                raise Refused(f'(AlreadyExists): error when creating "STDIN": {kind.lower()} "{name}" already exists')
            if not dry:
                self.objects[kind, name] = {"metadata": {}, "status": {}, **manifest}
            word = next(word for word, known in KINDS.items() if known == kind)
            send(f"{word}/{name} created{' (server dry run)' if dry else ''}\n")
            if kind in ("Job", "JobSet") and not dry and not manifest["spec"].get("suspend"):
                self.start(name)

    def get(self, what, options, _, send):
        resource, _, name = what[0].partition("/")
        self.need(resource, "get" if name else "list")
        if resource == "pods":
            wanted = options["selector"].partition("=")[2]
            send(json.dumps({"items": [pod for pod in self.pods.values() if pod["job"] == wanted]}))
        elif resource == "workloads.kueue.x-k8s.io":
            send(json.dumps({"items": self.workloads}))
        elif resource == "localqueues.kueue.x-k8s.io":
            if name not in self.queues:
                raise Refused(f'(NotFound): localqueues.kueue.x-k8s.io "{name}" not found')
            send(f"localqueue.kueue.x-k8s.io/{name}\n")
        elif resource == "daemonsets.apps,deployments.apps":
            send(json.dumps({"items": [{"metadata": {"name": self.daemons}}]}))
        else:
            if (self.kinds[resource], name) not in self.objects:
                raise Refused(f'(NotFound): {resource} "{name}" not found')
            send(json.dumps(self.objects[self.kinds[resource], name]))

    def delete(self, what, options, _, send):
        if what == ["pods"]:
            self.need("pods", "list", "delete")
            wanted = options["selector"].partition("=")[2]
            for name in [name for name, pod in self.pods.items() if pod["job"] == wanted]:
                del self.pods[name]
            return self.finish_deletion(wanted)
        for each in what:
            resource, _, name = each.partition("/")
            kind = RESOURCES.get(resource) or KINDS[resource]
            self.need(next(plural for plural, known in RESOURCES.items() if known == kind), "delete")
            found = self.objects.get((kind, name))
            if found and options.get("cascade") == "foreground" and any(pod["job"] == name for pod in self.pods.values()):
                found["metadata"]["deletionTimestamp"] = now()  # until its pods have ended
            elif found:
                del self.objects[kind, name]
                for pod in [pod for pod, of in self.pods.items() if kind in ("Job", "JobSet") and of["job"] == name]:
                    del self.pods[pod]
                send(f"{kind.lower()} \"{name}\" deleted\n")

    def print_log(self, pod, follow, tail, send):
        self.need("pods", "get")
        self.need("pods/log", "get")
        if pod not in self.pods:
            raise Refused(f'(NotFound): pods "{pod}" not found')
        sent = 0
        while True:
            running = pod in self.pods and self.pods[pod]["status"]["phase"] in ("Pending", "Running")
            lines = self.logs.get(pod, [])[-tail:]
            for line in lines[sent:]:
                send(line + "\n")
            sent = len(lines)
            if not follow or not running:
                return
            time.sleep(0.05)

    # The controllers.

    def job(self, name):
        return self.objects.get(("Job", name)) or self.objects.get(("JobSet", name))

    def spec(self, name):
        spec = self.job(name)["spec"]
        return spec["replicatedJobs"][0]["template"]["spec"] if "replicatedJobs" in spec else spec

    def start(self, name):
        for index in range(self.spec(name)["completions"]):
            self.make_pod(name, index)

    def make_pod(self, name, index):
        self.made += 1
        infix = "-workload-0" if ("JobSet", name) in self.objects else ""
        pod = f"{name}{infix}-{index}-{self.made:05}"
        created = f"2026-01-01T{self.made // 3600:02}:{self.made // 60 % 60:02}:{self.made % 60:02}Z"
        self.pods[pod] = {"job": name, "metadata": {"name": pod, "creationTimestamp": created, "annotations": {INDEX: str(index)}},
                          "spec": {}, "status": {"phase": "Pending"}}

    def newest(self, name, index):
        of = [pod for pod in self.pods.values() if pod["job"] == name and pod["metadata"]["annotations"][INDEX] == str(index)]
        return max(of, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def admit(self, name):
        """The queue lets it in."""
        self.job(name)["spec"]["suspend"] = False
        self.start(name)

    def run(self, name, nodes="n"):
        self.made += 600  # seconds since what was before
        for index in range(self.spec(name)["completions"]):
            pod = self.newest(name, index)
            pod["spec"]["nodeName"] = f"{nodes}{index}"
            pod["status"] = {"phase": "Running"}

    def log(self, name, index, *lines):
        self.logs.setdefault(self.newest(name, index)["metadata"]["name"], []).extend(lines)

    def set_condition(self, name, kind, reason="", message=""):
        self.job(name)["status"].setdefault("conditions", []).append({"type": kind, "status": "True", "reason": reason, "message": message})

    def exit(self, name, index, code, evicted=""):
        """A pod ends, and the controller does what the manifest says."""
        with self.lock:
            pod = self.newest(name, index)
            self.made += 1
            finished = f"2026-01-01T{self.made // 3600:02}:{self.made // 60 % 60:02}:{self.made % 60:02}Z"
            ended = {"exitCode": code, "finishedAt": finished, "reason": "Completed" if code == 0 else "Error"}
            pod["status"] = {"phase": "Failed" if code else "Succeeded",
                             "containerStatuses": [{"name": "megalith", "state": {"terminated": ended}}]}
            if evicted:
                pod["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "message": evicted}]
            if code:
                self.judge(name, index, pod, code, evicted)
            elif all(self.newest(name, i)["status"]["phase"] == "Succeeded" for i in range(self.spec(name)["completions"])):
                self.set_condition(name, "Complete" if ("Job", name) in self.objects else "Completed")

    def judge(self, name, index, pod, code, evicted):
        if any(each["type"] in ("Failed", "Complete") for each in self.job(name)["status"].get("conditions", [])):
            return
        spec, title = self.spec(name), pod["metadata"]["name"]
        for number, rule in enumerate(spec["podFailurePolicy"]["rules"]):
            if code in rule.get("onExitCodes", {}).get("values", []):
                why = f"Container megalith for pod {NAMESPACE}/{title} failed with exit code {code} matching {rule['action']} rule at index {number}"
            elif "onPodConditions" in rule and evicted:
                why = f"Pod {NAMESPACE}/{title} has condition DisruptionTarget matching {rule['action']} rule at index {number}"
            else:
                continue
            if rule["action"] == "Ignore":
                return self.make_pod(name, index)
            return self.fail(name, "PodFailurePolicy", why)
        status = self.job(name)["status"]
        status["failed"] = status.get("failed", 0) + 1
        if status["failed"] > spec["backoffLimit"]:
            return self.fail(name, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        return self.make_pod(name, index)

    def fail(self, name, reason, message):
        if ("Job", name) in self.objects:
            return self.set_condition(name, "Failed", reason, message)
        policy, status = self.job(name)["spec"]["failurePolicy"], self.job(name)["status"]
        action = "RestartJobSet"
        for rule in policy["rules"]:
            patterns = rule.get("onJobFailureMessagePatterns", [""])
            if reason in rule["onJobFailureReasons"] and any(re.search(pattern, message) for pattern in patterns):
                action = rule["action"]
                break
        counted = status.get("restartsCountTowardsMax", 0)
        if action == "FailJobSet" or (action == "RestartJobSet" and counted >= policy["maxRestarts"]):
            return self.set_condition(name, "Failed", "FailJobSetFailurePolicyAction" if action == "FailJobSet" else "ReachedMaxRestarts",
                                      "jobset failed due to one or more job failures (first failed job: " + name + "-workload-0)")
        status["restarts"] = status.get("restarts", 0) + 1
        if action == "RestartJobSet":
            status["restartsCountTowardsMax"] = counted + 1
        for pod in [pod for pod, of in self.pods.items() if of["job"] == name]:
            del self.pods[pod]
        return self.start(name)

    def finish_deletion(self, name):
        """The pods of a job that is being deleted have ended."""
        for pod in [pod for pod, of in self.pods.items() if of["job"] == name]:
            del self.pods[pod]
        for kind in ("Job", "JobSet"):
            if "deletionTimestamp" in self.objects.get((kind, name), {}).get("metadata", {}):
                del self.objects[kind, name]

    def forget(self, name):
        """Its time to live is over: the job goes, with its pods, and leaves all else."""
        for kind in ("Job", "JobSet"):
            self.objects.pop((kind, name), None)
        for pod in [pod for pod, of in self.pods.items() if of["job"] == name]:
            del self.pods[pod]
