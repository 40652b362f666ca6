#!/usr/bin/env python3
"""Writes compile_commands.json at the top of the tree, for clangd and clang-tidy.

Build first what it shall know (`bazel build //...`): generated include paths exist only then.
Arguments go to Bazel, e.g. --config=clang.
"""

import json
import os
import subprocess
import sys

# Flags of one compiler that the other's tools do not know.
_DROPPED = {"-fno-canonical-system-headers", "-Wunused-but-set-parameter", "-Wno-free-nonheap-object"}


def bazel(*arguments: str) -> str:
    command = ["bazel", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    flags = sys.argv[1:]
    top = bazel("info", "workspace").strip()
    root = bazel("info", "execution_root", *flags).strip()
    query = 'mnemonic("CppCompile", //...)'
    graph = json.loads(bazel("aquery", query, "--output=jsonproto", *flags))
    commands = []
    for action in graph.get("actions", []):
        arguments = [word for word in action["arguments"] if word not in _DROPPED]
        source = arguments[arguments.index("-c") + 1]
        # Editors open the file in the tree, not its link in the execution root.
        real = os.path.join(top, source)
        file = real if os.path.exists(real) else os.path.join(root, source)
        commands.append({"directory": root, "file": file, "arguments": arguments})
    path = os.path.join(top, "compile_commands.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump(commands, out, indent=1)
    print(f"{len(commands)} commands in {path}")


if __name__ == "__main__":
    main()
