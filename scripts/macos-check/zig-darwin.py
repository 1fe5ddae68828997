#!/usr/bin/env python3
"""Stands in for Apple's C compiler and archiver: passes what build scripts ask of clang on to zig.

The name it is called by says what it is: zcc, zcxx, zar or zranlib. ZIG is the path of zig.
Objective-C needs Apple's framework headers, which zig does not carry; where that fails an empty object is made
instead and said so: enough to check types, never enough to link.
"""

import os
import subprocess
import sys

zig = os.environ["ZIG"]
tool = os.path.basename(sys.argv[0])
given = sys.argv[1:]

if tool in ("zar", "zranlib"):
    os.execv(zig, [zig, tool[1:], *given])

# Flags for Apple's clang that zig refuses; the first kind is followed by a value.
with_value = ("-arch", "-target", "-isysroot")
prefixes = ("--target=", "-mmacosx-version-min", "-mmacos-version-min", "-isysroot")

arguments = []
words = iter(given)
for word in words:
    if word in with_value:
        next(words, None)
    elif not word.startswith(prefixes):
        arguments.append(word)


def compiler(language, rest):
    """The command line of zig's C ("cc") or C++ ("c++") compiler for macOS."""
    flags = ["-target", "aarch64-macos.11.0", "-Wno-unused-command-line-argument", "-fno-sanitize=undefined"]
    return [zig, language, *flags, *rest]


command = compiler("cc" if tool == "zcc" else "c++", arguments)
objective_c = [word for word in arguments if word.endswith((".m", ".mm"))]
if objective_c and "-c" in arguments and "-o" in arguments:
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        sys.exit(0)
    print("not compiled, there are no Apple headers here:", *objective_c, file=sys.stderr)
    result = arguments[arguments.index("-o") + 1]
    command = compiler("cc", ["-x", "c", "-c", "/dev/null", "-o", result])
os.execv(zig, command)
