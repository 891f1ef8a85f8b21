"""Compares a privacy manifest with the calls in the sources for which Apple asks a reason.

Each category that the sources use must be declared with a reason, and each that is declared must be used. The calls are
those of Apple's "Describing use of required reason API" that a library of this kind could come to use.

usage: privacy_manifest.py <PrivacyInfo.xcprivacy> <folder of sources> <file with the symbols that C objects import>
"""

import pathlib
import plistlib
import re
import sys

CALLS = {
    "NSPrivacyAccessedAPICategoryFileTimestamp": [
        # glibc's `__fxstat` is its fstat.
        r"\b([fl]?x?stat|fstatat|getattrlist|fgetattrlist|getattrlistbulk|getattrlistat)\(",
        r"attributesOfItem\b|\.creationDate\b|\.modificationDate\b|contentModificationDateKey|creationDateKey",
    ],
    "NSPrivacyAccessedAPICategoryDiskSpace": [
        r"\b(statfs|fstatfs|statvfs|fstatvfs)\(",
        r"systemFreeSize|systemSize\b|volumeAvailableCapacity|volumeTotalCapacity",
    ],
    "NSPrivacyAccessedAPICategorySystemBootTime": [r"\bmach_absolute_time\(|\bsystemUptime\b|kern\.boottime"],
    "NSPrivacyAccessedAPICategoryUserDefaults": [r"\bUserDefaults\b"],
    "NSPrivacyAccessedAPICategoryActiveKeyboards": [r"\bactiveInputModes\b"],
}


def main(manifest: pathlib.Path, sources: pathlib.Path, imported: pathlib.Path) -> int:
    with manifest.open("rb") as file:
        contents = plistlib.load(file)
    declared = {
        entry["NSPrivacyAccessedAPIType"]: entry["NSPrivacyAccessedAPITypeReasons"]
        for entry in contents.get("NSPrivacyAccessedAPITypes", [])
    }
    texts = {
        str(file): re.sub(r"//.*", "", file.read_text())
        for file in sorted([*sources.rglob("*.swift"), *sources.rglob("*.c")])
    }
    # As calls: `_fstat$INODE64` and `fstat@GLIBC_2.33` are fstat.
    texts[str(imported)] = re.sub(r"^_*(\w+?)([$@].*)?$", r"\1(", imported.read_text(), flags=re.M)
    used: dict[str, str] = {}
    for file, text in texts.items():
        for category, patterns in CALLS.items():
            if any(re.search(pattern, text) for pattern in patterns):
                used.setdefault(category, file)
    wrong = [f"{category} is used in {file} and not declared" for category, file in used.items() if not declared.get(category)]
    wrong += [f"{category} is declared and not used" for category in declared if category not in used]
    for line in wrong:
        print(f"{manifest}: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:4])))
