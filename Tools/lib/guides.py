"""Makes three Swift packages of what the README and the articles tell their readers to write.

`recipes` is the README alone: its lines for Package.swift and its example. `started` is Getting started as it stands:
its Package.swift, and its other blocks one after the other. `guides` has the README's lines, and three targets: the
guides that are followed from beginning to end and run, the blocks of all other articles, which are compiled, and the
tests of the article on testing.

A block of declarations stands by itself. A block of statements becomes the body of a function; what it takes for given
is in Tests/Guides/Given.swift, or in a comment before the block:

    <!-- given: var options = RunOptions() -->

A comment `<!-- not compiled: REASON -->` leaves the block out.

usage: guides.py <root of the repository> <folder to make them in>
"""

import pathlib
import re
import sys

BLOCK = re.compile(r"(?:<!-- (?P<key>given|not compiled): (?P<note>.*?) -->\n)?```swift\n(?P<code>.*?)```", re.S)
# Followed from beginning to end, in this order: each goes on with the declarations of those before it.
FOLLOWED = ["GettingStarted", "WorkingOffline", "MovingFromApollo", "MovingFromAWS"]
DECLARATION = re.compile(r"(@\w+(\(.*?\))? )*((public|private|final|extension) )*(struct|class|enum|func|extension) ")


class Guide:
    """The blocks of one text."""

    def __init__(self, path: pathlib.Path) -> None:
        self.name = path.stem
        self.package = ""
        self.manifest: list[str] = []
        self.blocks: list[tuple[str, str]] = []
        self.left_out: list[str] = []
        text = path.read_text()
        assert len(BLOCK.findall(text)) == text.count("```swift"), f"{path}: a block has no end"
        for match in BLOCK.finditer(text):
            code, note = match["code"], match["note"] or ""
            if match["key"] == "not compiled":
                self.left_out.append(note)
            elif code.startswith("// swift-tools-version:"):
                self.package = code
            elif code.startswith("// Package.swift\n"):
                self.manifest.append(code.split("\n", 1)[1])
            else:
                self.blocks.append((code, note))

    def source(self, *more: str) -> str:
        """One file, in which each block of statements is a function of its own."""
        modules = ("Foundation", "Larder", "LarderAWS", "LarderHTTP", *more)
        lines = [f"import {module}" for module in modules] + [""]
        for number, (code, note) in enumerate(self.blocks, 1):
            # An ellipsis stands for what the reader writes.
            code = re.sub(r"(?m)^(switch .*)\{ … \}", r"\1{ default: break }", code).replace("{ … }", "{ _ = () }")
            if is_declaration(code):
                lines += imports_first(lines, code)
            else:
                lines += [f"func {self.name.lower()}{number}() async throws {{", note, code.rstrip(), "}", ""]
        return "\n".join(lines)


def is_declaration(code: str) -> bool:
    top = [line for line in code.splitlines() if line and not line.startswith((" ", "}", ")", "//", "import "))]
    return all(DECLARATION.match(line) or line.startswith("@") or line.endswith('= """') for line in top)


def imports_first(lines: list[str], code: str) -> list[str]:
    return [line for line in code.splitlines() if not (line.startswith("import ") and line in lines)] + [""]


def by_path(lines: str, root: pathlib.Path) -> str:
    assert 'path: "../larder"' in lines, "the lines for Package.swift name Larder's folder"
    return lines.replace('path: "../larder"', f'name: "larder", path: "{root}"')


def manifest(name: str, lines: str, root: pathlib.Path, more_targets: str = "") -> str:
    lines = by_path(lines, root).rstrip()
    if more_targets:
        assert lines.endswith("]"), "the README's lines for Package.swift end with the list of targets"
        lines = lines[:-1].rstrip() + ",\n" + more_targets + "]"
    return (
        "// swift-tools-version: 6.2\nimport PackageDescription\n\n"
        f'let package = Package(\nname: "{name}",\n{lines}\n)\n'
    )


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main(root: pathlib.Path, folder: pathlib.Path) -> None:
    given = root / "Tests" / "Guides"
    readme = Guide(root / "README.md")
    catalogues = [root / "Sources" / name / f"{name}.docc" for name in ("Larder", "LarderAWS")]
    articles = {path.stem: Guide(path) for folder in catalogues for path in sorted(folder.glob("*.md"))}
    (lines,) = readme.manifest
    (test_target,) = articles["Testing"].manifest
    example, *_ = (code for code, _ in readme.blocks if is_declaration(code))

    recipes = folder / "recipes"
    write(recipes / "Package.swift", manifest("Recipes", lines, root))
    write(recipes / "Sources/Recipes/Example.swift", example)
    write(recipes / "Sources/Recipes/main.swift", (given / "Recipes.swift").read_text())

    started = articles["GettingStarted"]
    write(folder / "started/Package.swift", by_path(started.package, root))
    write(folder / "started/Sources/Cookbook/main.swift", "\n".join(code for code, _ in started.blocks))
    # The guides that go on from there take its types, and run a program of their own.
    started.blocks = [block for block in started.blocks if is_declaration(block[0])]

    guides = folder / "guides"
    products = [f'.product(name: "{name}", package: "larder")' for name in ("Larder", "LarderHTTP", "LarderAWS")]
    testing = '.product(name: "LarderTesting", package: "larder")'
    followed = f'.executableTarget(name: "Followed", dependencies: [{", ".join([*products, testing])}]),\n'
    # The readers' program is one that the tests can import; here it has the blocks of the other articles.
    lines = lines.replace(".executableTarget(", ".target(").replace(products[1], ", ".join(products[1:]))
    write(guides / "Package.swift", manifest("Guides", lines, root, followed + test_target))
    write(guides / "Sources/Followed/main.swift", (given / "Followed.swift").read_text())
    write(guides / "Sources/Recipes/Given.swift", (given / "Given.swift").read_text())
    write(guides / "Tests/RecipesTests/Testing.swift", articles["Testing"].source("LarderTesting", "Testing"))
    for name in FOLLOWED:
        write(guides / f"Sources/Followed/{name}.swift", articles[name].source())
    readme.blocks = [block for block in readme.blocks if block[0] != example]
    for guide in [readme, *(guide for name, guide in articles.items() if name not in [*FOLLOWED, "Testing"])]:
        if guide.blocks:
            write(guides / f"Sources/Recipes/{guide.name}.swift", guide.source())
        for reason in guide.left_out:
            print(f"{guide.name}: a block is not compiled: {reason}")
    print(f"{sum(len(guide.blocks) for guide in articles.values())} blocks")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]))
