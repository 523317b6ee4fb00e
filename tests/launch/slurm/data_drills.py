"""Drills of data on a real Slurm cluster, for slurm_test.py."""
import json
import re
import resource
import subprocess
import time

from real_cluster import PROFILE, expect


STAGES = [["extract", "--input", "raw/*.jsonl.zst", "--output-dir", "{}/text"],
          ["concat", "--input", "{}/text/*.jsonl", "--files-per-chunk", "50", "--output-dir", "{}/chunks"],
          ["tokenize", "--input", "{}/chunks/*.jsonl", "--output-dir", "{}/tokens", "--append-eod"],
          ["merge", "--input", "{}/tokens/*_text_document", "--output-prefix", "{}/all"]]


def stages(output):
    return [["data", *(word.format(output) for word in stage)] for stage in STAGES]


def launch_stages(cluster, name, *options, code=0):
    words = [word for stage in stages(name) for word in ["--", *stage]]
    return cluster.megalith("launch", "slurm", *PROFILE, "--name", name, *options, *words, code=code)


def made(folder):
    """What the stages make, by path; records hold the times of their inputs."""
    found = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.suffix in (".jsonl", ".bin", ".idx")}
    expect(found, f"there is nothing in {folder}")
    return found


def write_raw(cluster):
    """600 files, and in `one` what one process makes of them; once."""
    raw = cluster.folder / "raw"
    if raw.exists():
        return
    raw.mkdir()
    for i in range(600):
        (raw / f"part_{i}.jsonl").write_text("".join(json.dumps({"text": f"document {d} of file {i} " * (1 + i % 7)}) + "\n" for d in range(20)))
    subprocess.run(["zstd", "-q", "--rm", *map(str, raw.glob("*.jsonl"))], check=True, timeout=120)
    for stage in stages("one"):
        cluster.megalith(*stage)


def wait_for_task_on(tasks, node, seconds=60):
    """Until a task has just begun on a node: the last line of its journal says so."""
    before = time.time()
    while time.time() < before + seconds:
        for journal in tasks.glob("*.journal"):
            lines = journal.read_text().splitlines()
            if lines and re.search(rf" start .* {node}$", lines[-1]) and journal.stat().st_mtime > before:
                return
        time.sleep(0.1)
    expect(False, f"no task begins on {node}")


def drill_data(cluster):
    """600 files through extract, concat, tokenize and merge on 4 nodes, one of which loses its power: the bytes of one process."""
    write_raw(cluster)
    # A task takes long enough to be caught at work.
    slow = cluster.folder / "slow.sh"
    slow.write_text("sleep 2\n")
    answer = launch_stages(cluster, "four", "--nodes", "4", "--array", "8", "--ranks-per-node", "2", "--set", f"source[0]={slow}")
    expect("extract  job" in answer and "8 tasks of 2 workers" in answer, answer)
    status = cluster.wait_for("four", r"extract: [1-7] of 8 tasks done, running on n")
    expect(re.search(r"merge: 0 of 1 task done, waiting, job \d+: Dependency", status), status)
    wait_for_task_on(cluster.folder / "runs/four/launch/four/tasks", "n2")
    cluster.need("fail", "n2")
    try:
        cluster.wait_for("four", "state     ended: complete")
    finally:
        cluster.need("heal", "n2")
    journals = [file.read_text() for file in (cluster.folder / "runs/four/launch/four/tasks").glob("*.journal")]
    expect(len(journals) == 25, f"{len(journals)} tasks")
    expect(any(text.count(" start ") == 2 for text in journals), "no task was started again, though a node was lost")
    expect(made(cluster.folder / "four") == made(cluster.folder / "one"), "the bytes differ from those of one process")
    expect("part_0" not in cluster.megalith("launch", "logs", "four"), "the log holds inputs")
    # The same again: only what is missing is made.
    for file in cluster.folder.glob("four/all.*"):
        file.unlink()
    launch_stages(cluster, "four", "--nodes", "4")
    cluster.wait_for("four", "state     ended: complete")
    log = cluster.megalith("launch", "logs", "four")
    counts = [(int(a), int(b)) for a, b in re.findall(r"extract\.\d+  (\d+) files? \((\d+) were there before\)", log)]
    expect(sum(a for a, _ in counts) == 600 and sum(b for _, b in counts) == 600, f"{counts} in\n{log}")
    expect(log.count("complete before:") == 12 and re.search(r"merge\.0  wrote four/all\.bin", log), log)
    expect(made(cluster.folder / "four") == made(cluster.folder / "one"), "the bytes differ after the second launch")


def drill_data_ends(cluster):
    """Data that is stopped, or that its time limit ends, says so and goes on where it was."""
    write_raw(cluster)
    slow = cluster.folder / "slower.sh"
    slow.write_text("sleep 300\n")
    launch_stages(cluster, "ends", "--nodes", "2", "--set", f"source[0]={slow}")
    cluster.wait_for("ends", "extract: 0 of 2 tasks done, running on n")
    cluster.megalith("launch", "stop", "ends")
    cluster.wait_for("ends", r"state     ended: stopped on request \(exit code 75\)")
    expect(not cluster.need("exec", "squeue", "-h", "-t", "pending,running").strip(), "something still waits or runs")
    launch_stages(cluster, "ends", "--nodes", "2", "--time", "1", "--set", f"source[0]={slow}")
    status = cluster.wait_for("ends", "state     ended: extract: task . was ended by Slurm, at its time limit or by scancel", seconds=200)
    expect("merge: 0 of 1" in status, status)
    launch_stages(cluster, "ends", "--nodes", "2")
    cluster.wait_for("ends", "state     ended: complete")
    expect(made(cluster.folder / "ends") == made(cluster.folder / "one"), "the bytes differ from those of one process")


def drill_data_names(cluster):
    """59,166 file names are planned in under 5 s, of processor time: others may be at work on this machine."""
    slim = cluster.folder / "slim"
    slim.mkdir()
    for i in range(59166):
        (slim / f"example_train_chunk{i // 6000 + 1}_shard{i % 6000}.jsonl.zst").touch()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    script = cluster.megalith("launch", "slurm", "--name", "slim", "--nodes", "32", "--ranks-per-node", "32", "--render", "--",
                              "data", "extract", "--input", "slim/*.zst", "--output-dir", "out")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    expect(took < 5 and "--array=0-31 " in script, f"it took {took:.1f} s:\n{script}")


def drill_prepare(cluster):
    """`data prepare` alone, as an array: the bytes of one process."""
    write_raw(cluster)
    prepare = ["data", "prepare", "--input", "raw/*.jsonl.zst", "--append-eod", "--files-per-shard", "70", "--output-prefix"]
    cluster.megalith(*prepare, "prepared-one/my")
    cluster.megalith("launch", "slurm", *PROFILE, "--name", "prepared", "--nodes", "4", "--", *prepare, "prepared/my")
    status = cluster.wait_for("prepared", "state     ended: complete")
    expect("prepare: 4 of 4 tasks done" in status, status)
    expect(len(made(cluster.folder / "prepared")) == 18, "not 9 shards")
    expect(made(cluster.folder / "prepared") == made(cluster.folder / "prepared-one"), "the bytes differ from those of one process")


def drill_data_fails(cluster):
    """A stage that fails cancels what needs it; the same command goes on once its cause is gone."""
    write_raw(cluster)
    chunk = cluster.folder / "three/chunks/train_chunk_3.jsonl"
    chunk.parent.mkdir(parents=True)
    chunk.write_text("somebody else's\n")
    launch_stages(cluster, "three", "--nodes", "3")
    status = cluster.wait_for("three", r"state     ended: concat: the input is wrong, the log of task 0 says what \(exit code 2\)")
    expect("tokenize: 0 of 3" in status and "extract: 3 of 3" in status, status)
    expect("exists and was not made from these inputs" in cluster.megalith("launch", "logs", "three"), "the log does not say what")
    ids = json.loads((cluster.folder / "runs/three/launch/three/launch.json").read_text())["ids"]
    deadline = time.monotonic() + 30
    while set(cluster.need("exec", "squeue", "-h", "-j", ",".join(ids[2:]), "-t", "all", "-o", "%T").split()) != {"CANCELLED"}:
        expect(time.monotonic() < deadline, "what needs the failed stage was not cancelled")
        time.sleep(0.5)
    chunk.unlink()
    launch_stages(cluster, "three", "--nodes", "3")
    cluster.wait_for("three", "state     ended: complete")
    expect(made(cluster.folder / "three") == made(cluster.folder / "one"), "the bytes differ from those of one process")
    refused = launch_stages(cluster, "wide", "--array", "70002", code=2)
    expect("MaxArraySize" in refused and "--array 70001" in refused, refused)
