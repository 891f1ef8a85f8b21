"""Makes what `Tools/check-apple` type-checks against: the toolchain's own library interfaces, said for Apple's systems.

A toolchain for Linux carries the interfaces of the standard library as text, with Apple's availability in it. Retargeted
and without the lines that only Linux's library can compile, they serve for type checking; nothing is ever linked to them.

usage: apple_interfaces.py <toolchain's usr folder> <output folder> <triple>
"""

import pathlib
import re
import sys

MODULES = [
    "Swift",
    "_Concurrency",
    "_StringProcessing",
    "_RegexParser",
    "_Builtin_float",
    "Synchronization",
    "SwiftOnoneSupport",
]

# By the system in a triple: the folder in which the compiler looks for its library, and the name that an interface has.
FOLDERS = {"ios": ("iphoneos", "ios"), "macosx": ("macosx", "macos")}


def retargeted(text: str, module: str, triple: str) -> str:
    text = re.sub(r"-target [a-z0-9_]+-unknown-linux-gnu", f"-target {triple}", text)
    # These two ask that clients of an older system be thought of, which Linux's text does not say right.
    text = text.replace("-target-min-inlining-version min", "").replace("-library-level api", "")
    text = re.sub(r"@backDeployed\([^)]*\)\s?", "", text)
    if module == "Swift":
        # Float80, which arm64 has not.
        text = re.sub(r"^.*= _stdlib_(remainderl|squareRootl)\(.*\n", "", text, flags=re.M)
    if module == "Synchronization":
        text = re.sub(r"^(@_exported )?import Glibc\n", "", text, flags=re.M)
        text = text.replace("_swift_stdlib_gettid()", "(0 as UInt32)")
    return text


def main(toolchain: pathlib.Path, output: pathlib.Path, triple: str) -> None:
    architecture, _, system = triple.split("-")
    folder, name = FOLDERS[re.sub(r"[0-9.]+$", "", system)]
    library = toolchain / "lib" / "swift"
    (output / folder).mkdir(parents=True)
    for link in ("shims", "clang", "apinotes"):
        (output / link).symlink_to((library / link).resolve())
    for module in MODULES:
        found = sorted((library / "linux" / f"{module}.swiftmodule").glob("*-linux-gnu.swiftinterface"))
        if not found:
            sys.exit(f"the toolchain has no interface of {module}")
        to = output / folder / f"{module}.swiftmodule"
        to.mkdir()
        text = retargeted(found[0].read_text(), module, triple)
        (to / f"{architecture}-apple-{name}.swiftinterface").write_text(text)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3])
