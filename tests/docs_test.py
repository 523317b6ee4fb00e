#!/usr/bin/env python3
"""The pages about the code say what the code says: each C++ excerpt is in the file named before it, and each file or folder that is
mentioned in `backquotes` exists. Then the same for planted mistakes, which must be noticed.

  tests/docs_test.py REPOSITORY
"""
import pathlib
import re
import sys

PAGES = ["CONTRIBUTING.md", "src/README.md", "docs/design.md", "docs/tour.md"]
EXCERPT = re.compile(r"`(src/[^`\n]+)`(?:(?!\n\n)[^`])*:\n\n```cpp\n(.*?)```", re.DOTALL)
MENTION = re.compile(r"`((?:[a-z0-9_]+/)+(?:[a-z0-9_]+/|[a-z0-9_.]+\.(?:h|cpp|cu|cuh|py|sh|md|yaml)))`")


def without_spaces(code):
    return re.sub(r"\s", "", re.sub(r"//[^\n]*", "", code))


def excerpt_problems(text, root):
    excerpts = EXCERPT.findall(text)
    if len(excerpts) != text.count("```cpp"):
        yield "a C++ excerpt has no line before it that ends with its file in `backquotes` and a colon"
    for name, excerpt in excerpts:
        code = without_spaces((root / name).read_text()) if (root / name).is_file() else ""
        for part in excerpt.split("...\n"):
            found = code.find(without_spaces(part))
            if found < 0:
                yield f"{name} does not hold this, or not in this order:\n{part}"
                break
            code = code[found + len(without_spaces(part)):]


def mention_problems(text, root):
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for name in sorted(set(MENTION.findall(prose))):
        if not any((base / name).exists() for base in (root, root / "src")):
            yield f"{name} is mentioned and is neither below the repository nor below src/"


def problems(text, root):
    return [*excerpt_problems(text, root), *mention_problems(text, root)]


def check_the_checker(root):
    intro = "In `src/core/error.h`:\n\n```cpp\n"
    begin, end = "enum   class ErrorKind {\n", "  internal,\n"
    good = intro + begin + "...\n" + end + "```\nSee `core/error.h` and `src/core/`.\n"
    assert problems(good, root) == [], problems(good, root)
    for bad in [good.replace("internal", "infernal"), good.replace(intro, "```cpp\n"),
                good.replace("In `src/core/error.h`", "In `src/core/terror.h`"), intro + end + "...\n" + begin + "```\n",
                intro + begin + end + "```\n", "See `core/terror.h`.", "See `src/cellar/`."]:
        assert problems(bad, root), f"not noticed:\n{bad}"


if __name__ == "__main__":
    repository = pathlib.Path(sys.argv[1])
    check_the_checker(repository)
    found = [f"{page}: {problem}" for page in PAGES for problem in problems((repository / page).read_text(), repository)]
    print("\n".join(found) if found else "docs: every excerpt and every file is there")
    sys.exit(1 if found else 0)
