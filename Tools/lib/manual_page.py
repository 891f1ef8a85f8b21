"""Writes a manual page from what --experimental-dump-help of a tool prints."""

import json
import sys


def text(value):
    """As roff takes it: no line is a request, and no backslash an escape."""
    lines = (value or "").replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in lines)


def option(argument):
    names = ["-" * (1 if name["kind"] == "short" else 2) + name["name"] for name in argument.get("names", [])]
    value = argument.get("valueName", "")
    if argument["kind"] == "positional":
        return f"\\fI{text(value)}\\fR"
    shown = ", ".join(f"\\fB{text(name)}\\fR" for name in names)
    return shown + (f" \\fI{text(value)}\\fR" if argument["kind"] == "option" else "")


def section(command, path):
    """A command, and then its verbs."""
    path = path + [command["commandName"]]
    if len(path) > 1:
        print(f".SS {text(' '.join(path[1:]))}")
        print(text(command.get("abstract")))
        if command.get("discussion"):
            print(f".PP\n{text(command['discussion'])}")
    for argument in command.get("arguments", []):
        if argument.get("shouldDisplay", True):
            print(f".TP\n{option(argument)}\n{text(argument.get('abstract'))}")
    for verb in command.get("subcommands", []):
        if verb["commandName"] != "help":
            section(verb, path)


tool = json.load(sys.stdin)["command"]
name = tool["commandName"]
print(f'.TH {name.upper()} 1 "" Larder')
print(f".SH NAME\n{text(name)} \\- {text(tool.get('abstract'))}")
print(f".SH SYNOPSIS\n.B {text(name)}\n\\fIverb\\fR [\\fIoptions\\fR]")
print(".SH DESCRIPTION")
for paragraph in (tool.get("discussion") or "").split("\n\n"):
    # Examples are indented, and keep their lines.
    print(f".PP\n.nf\n{text(paragraph)}\n.fi" if paragraph.startswith("  ") else f".PP\n{text(paragraph)}")
print(".SH VERBS")
section(tool, [])
