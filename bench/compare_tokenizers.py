#!/usr/bin/env python3
"""Compares Megalith's ids with those of tiktoken and Hugging Face tokenizers, and the rates of all three.

  python3 -m venv VENV && VENV/bin/pip install tiktoken tokenizers numpy
  VENV/bin/python bench/compare_tokenizers.py --megalith build/cpu/megalith --vocabularies DIRECTORY TEXT_FILE...

DIRECTORY holds gpt2/vocab.json, gpt2/merges.txt, cl100k_base.tiktoken and o200k_base.tiktoken. Text files must be UTF-8
and are cut at line ends into documents of about 64 kB, since the references are slow on long ones: each document is
encoded alone by both sides. Exits with 1 if an id differs.
"""
import argparse
import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import tiktoken
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
CL100K = (r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"""
          r"""\s++$|\s*[\r\n]|\s+(?!\S)|\s""")
LLAMA3 = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"""
          r"""\s*[\r\n]+|\s+(?!\S)|\s+""")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
O200K = "|".join([f"{PREFIX}{UPPER}*{LOWER}+{CONTRACTION}", f"{PREFIX}{UPPER}+{LOWER}*{CONTRACTION}",
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])


def byte_alphabet():
    bytes_of, moved = {}, 0
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            bytes_of[chr(byte)] = byte
        else:
            bytes_of[chr(256 + moved)] = byte
            moved += 1
    return bytes_of


def gpt2_ranks(directory):
    bytes_of = byte_alphabet()
    vocab = json.loads((directory / "gpt2/vocab.json").read_text())
    return {bytes(bytes_of[c] for c in token): id for token, id in vocab.items() if token != "<|endoftext|>"}


def tiktoken_ranks(path):
    pairs = (line.split() for line in path.read_text().splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def tiktoken_encoder(pattern, ranks):
    encoding = tiktoken.Encoding("compared", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return encoding.encode_ordinary


def hugging_face_gpt2(directory):
    tokenizer = Tokenizer(models.BPE.from_file(str(directory / "gpt2/vocab.json"), str(directory / "gpt2/merges.txt")))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


# A tokenizer.json in the shape of Llama-3's, from cl100k's ranks: merges as Hugging Face's converter finds them.
def hugging_face_llama3(ranks, path):
    alphabet = {byte: char for char, byte in byte_alphabet().items()}
    spelled = {token: "".join(alphabet[b] for b in token) for token in ranks}
    merges = []
    for token, rank in ranks.items():
        halves = [(token[:i], token[i:]) for i in range(1, len(token)) if token[:i] in ranks and token[i:] in ranks]
        halves.sort(key=lambda pair: (ranks[pair[0]], ranks[pair[1]]))
        merges += [(rank, spelled[a], spelled[b]) for a, b in halves]
    merges.sort(key=lambda merge: merge[0])
    tokenizer = Tokenizer(models.BPE({spelled[t]: r for t, r in ranks.items()}, [(a, b) for _, a, b in merges],
                                     ignore_merges=True))
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    tokenizer.save(str(path))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def documents_of(path, size):
    text = path.read_bytes().decode()
    begin, documents = 0, []
    while begin < len(text):
        end = len(text) if begin + size >= len(text) else text.find("\n", begin + size) + 1 or len(text)
        documents.append(text[begin:end])
        begin = end
    return documents


class Megalith:
    def __init__(self, program, scratch, options):
        self.program, self.scratch, self.options = program, scratch, options

    # All documents, and the rate of the encoder alone.
    def encode(self, documents):
        lengths, texts, ids = self.scratch / "lengths", self.scratch / "text", self.scratch / "ids"
        encoded = [document.encode() for document in documents]
        texts.write_bytes(b"".join(encoded))
        lengths.write_text("\n".join(str(len(document)) for document in encoded))
        answer = subprocess.run([self.program, "data", "encode", *self.options, "--input", texts, "--lengths", lengths,
                                 "--output", ids], check=True, capture_output=True, text=True).stderr
        found = numpy.fromfile(ids, dtype=numpy.int32)
        return found, float(answer.split("MB/s")[0].split()[-1])


def compare(name, megalith, reference_name, reference, files, size):
    differing, total, seconds, bytes_in, rates = 0, 0, 0.0, 0, []
    for path in files:
        documents = documents_of(path, size)
        found, rate = megalith.encode(documents)
        begin, count = time.process_time(), 0
        for document in documents:
            wanted = numpy.array(reference(document), dtype=numpy.int32)
            mine = found[count:count + len(wanted)]
            if not numpy.array_equal(mine, wanted):
                differing += 1
                first = next((i for i in range(min(len(mine), len(wanted))) if mine[i] != wanted[i]), len(mine))
                around = slice(max(0, first - 3), first + 5)
                print(f"  {path}: differs at {wanted[around]} / {mine[around]}")
                break
            count += len(wanted)
        seconds += time.process_time() - begin
        differing += differing == 0 and count != len(found)
        size_in = sum(len(document.encode()) for document in documents)
        bytes_in, total = bytes_in + size_in, total + count
        rates.append((path.stem, rate))
    rate_list = ", ".join(f"{stem} {rate:.0f}" for stem, rate in rates)
    print(f"{name} against {reference_name}: {bytes_in / 1e6:.1f} MB, {total} ids, {differing} files differ; "
          f"{reference_name} {bytes_in / 1e6 / seconds:.1f} MB/s; Megalith MB/s: {rate_list}", flush=True)
    return differing


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megalith", required=True)
    parser.add_argument("--vocabularies", type=pathlib.Path, required=True)
    parser.add_argument("--document-chars", type=int, default=65536)
    parser.add_argument("--only", default="", help="run the comparisons whose name holds this")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    directory = arguments.vocabularies
    cl100k, o200k = directory / "cl100k_base.tiktoken", directory / "o200k_base.tiktoken"
    gpt2 = ["--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", directory / "gpt2/vocab.json", "--merge-file",
            directory / "gpt2/merges.txt"]
    rank_file = lambda path, pattern: ["--tokenizer-type", "TikTokenizer", "--tokenizer-model", path,
                                       "--tiktoken-pattern", pattern]
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        llama3 = scratch / "tokenizer.json"
        cases = [
            ("gpt2", gpt2, "tiktoken", lambda: tiktoken_encoder(GPT2, gpt2_ranks(directory))),
            ("cl100k", rank_file(cl100k, "cl100k"), "tiktoken",
             lambda: tiktoken_encoder(CL100K, tiktoken_ranks(cl100k))),
            ("o200k", rank_file(o200k, "o200k"), "tiktoken", lambda: tiktoken_encoder(O200K, tiktoken_ranks(o200k))),
            ("llama3", rank_file(cl100k, "llama3"), "tiktoken",
             lambda: tiktoken_encoder(LLAMA3, tiktoken_ranks(cl100k))),
            ("gpt2 merge list", gpt2, "tokenizers", lambda: hugging_face_gpt2(directory)),
            ("llama3 tokenizer.json", ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", llama3],
             "tokenizers", lambda: hugging_face_llama3(tiktoken_ranks(cl100k), llama3)),
        ]
        differing = 0
        for name, options, reference_name, make_reference in cases:
            if arguments.only in f"{name} {reference_name}":
                reference = make_reference()
                megalith = Megalith(arguments.megalith, scratch, options)
                differing += compare(name, megalith, reference_name, reference, arguments.files,
                                     arguments.document_chars)
    print("zero differences" if differing == 0 else f"{differing} DIFFERENCES")
    return differing != 0


if __name__ == "__main__":
    sys.exit(main())
