#!/usr/bin/env python3
"""The pages about the code say what the code says: each C++ excerpt is in the file named before it, each file or folder that is
mentioned in `backquotes` exists, and so does each file that a comment of the sources mentions. Then the same for planted mistakes,
which must be noticed.

  tests/docs_test.py REPOSITORY
"""
import pathlib
import re
import sys

PAGES = ["CONTRIBUTING.md", "src/README.md", "docs/design.md", "docs/tour.md"]
EXCERPT = re.compile(r"`(src/[^`\n]+)`(?:(?!\n\n)[^`])*:\n\n```cpp\n(.*?)```", re.DOTALL)
MENTION = re.compile(r"`((?:[a-z0-9_]+/)+(?:[a-z0-9_]+/|[a-z0-9_.]+\.(?:h|cpp|cu|cuh|py|sh|md|yaml)))`")


COMMENT = re.compile(r"(?:^|\s)//(.*)")
CITED = re.compile(r"(?<![\w./-])[a-z0-9_/]+\.(?:h|cpp|cu|cuh|md|py)\b")


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


def comment_problems(name, code, files):
    for comment in COMMENT.findall(code):
        for cited in CITED.findall(comment):
            if not any(file == cited or file.endswith("/" + cited) for file in files):
                yield f"{name}: a comment mentions {cited}, which is not in the repository"


def source_problems(root):
    folders = [folder for folder in root.iterdir() if folder.is_dir() and folder.name != "build" and not folder.name.startswith(".")]
    files = [str(path.relative_to(root)) for folder in folders for path in folder.rglob("*")]
    for folder in ("src", "tests", "bench"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".h", ".cpp", ".cu", ".cuh"}:
                yield from comment_problems(path.relative_to(root), path.read_text(), files)


def check_the_checker(root):
    intro = "In `src/core/error.h`:\n\n```cpp\n"
    begin, end = "enum   class ErrorKind {\n", "  internal,\n"
    good = intro + begin + "...\n" + end + "```\nSee `core/error.h` and `src/core/`.\n"
    assert problems(good, root) == [], problems(good, root)
    for bad in [good.replace("internal", "infernal"), good.replace(intro, "```cpp\n"),
                good.replace("In `src/core/error.h`", "In `src/core/terror.h`"), intro + end + "...\n" + begin + "```\n",
                intro + begin + end + "```\n", "See `core/terror.h`.", "See `src/cellar/`."]:
        assert problems(bad, root), f"not noticed:\n{bad}"
    files = ["src/core/error.h"]
    assert not [*comment_problems("a.h", 'f();  // core/error.h\n"http://x/a.h"', files)]
    for bad in ["// terror.h", "  // as (core/terror.h) says", "f();  // src/error.h"]:
        assert [*comment_problems("a.h", bad, files)], f"not noticed: {bad}"


if __name__ == "__main__":
    repository = pathlib.Path(sys.argv[1])
    check_the_checker(repository)
    found = [f"{page}: {problem}" for page in PAGES for problem in problems((repository / page).read_text(), repository)]
    found += source_problems(repository)
    print("\n".join(found) if found else "docs: every excerpt and every file is there")
    sys.exit(1 if found else 0)
