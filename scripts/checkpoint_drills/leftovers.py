"""Files that no checkpoint needs."""

import json
import os

TRACKER = "latest_checkpointed_iteration.txt"
LOCK = ".megalith.lock"  # of a directory that the config names


def names_in(directory):
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []


def leftovers_in_checkpoints(directory):
    """Whatever is not the tracker file, the lock or a step that consists of its manifest and the shards that it lists."""
    left = []
    for name in names_in(directory):
        step = os.path.join(directory, name)
        if name in (TRACKER, LOCK):
            continue
        if not name.startswith("step-") or not os.path.exists(os.path.join(step, "manifest.json")):
            left.append(step)
            continue
        with open(os.path.join(step, "manifest.json")) as file:
            needed = {"manifest.json", *(shard["file"] for shard in json.load(file)["body"]["shards"])}
        left += [os.path.join(step, file) for file in names_in(step) if file not in needed]
    return left


def leftovers_on_node(directory):
    """Shards without the manifest that commits them, and manifests without a shard."""
    left = []
    for folder, _, files in os.walk(directory):
        parts = {name.removeprefix("part-").removesuffix(".json") for name in files if name.startswith("part-")}
        shards = {name.removeprefix("shard-").removesuffix(".safetensors") for name in files if name.startswith("shard-")}
        left += [os.path.join(folder, name) for name in sorted(parts ^ shards)]
    return left


def leftovers_in_memory(directory):
    """Whatever is not a lock."""
    return [os.path.join(folder, name) for folder, _, files in os.walk(directory) for name in files if name != "lock"]
