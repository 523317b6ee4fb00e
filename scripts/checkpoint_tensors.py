"""Reads the tensors of a checkpoint whose ranks have each written a shard. Nothing is verified: `megalith checkpoint verify` does that."""

import json
import math
import os
import struct

BYTES = {"f32": 4, "bf16": 2}


class Checkpoint:
    """The tensors of a step's directory, whole: {"weights/embedding.tokens.weight": ("f32", bytes), ...}"""

    def __init__(self, directory):
        with open(os.path.join(directory, "manifest.json")) as file:
            self.manifest = json.load(file)["body"]
        self.shards = {shard["file"]: read_shard(os.path.join(directory, shard["file"])) for shard in self.manifest["shards"]}
        self.tensors = {f"{tensor['kind']}/{tensor['name']}": (tensor["dtype"], self.join(tensor))
                        for tensor in self.manifest["tensors"]}
        del self.shards

    def join(self, tensor):
        """Pieces are boxes of (first dimension, second dimension times the others)."""
        size = BYTES[tensor["dtype"]]
        row_bytes = math.prod(tensor["shape"][1:]) * size
        inner_bytes = math.prod(tensor["shape"][2:]) * size
        whole = bytearray(math.prod(tensor["shape"]) * size)
        for piece in tensor["pieces"]:
            header, content = self.shards[piece["shard"]]
            begin = header[stored_name(tensor, piece)]["data_offsets"][0]
            first_row, rows = piece["offset"][0], piece["extent"][0]
            column = piece["offset"][1] * inner_bytes if len(tensor["shape"]) > 1 else 0
            width = math.prod(piece["extent"][1:]) * size
            for row in range(rows):
                place = (first_row + row) * row_bytes + column
                whole[place:place + width] = content[begin + row * width:begin + (row + 1) * width]
        return bytes(whole)


def stored_name(tensor, piece):
    name = f"{tensor['kind']}/{tensor['name']}"
    return name if piece["extent"] == tensor["shape"] else f"{name}@{','.join(map(str, piece['offset']))}"


def read_shard(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)), file.read()
