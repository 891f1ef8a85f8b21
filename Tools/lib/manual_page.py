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


def arguments(command):
    for argument in command.get("arguments", []):
        if argument.get("shouldDisplay", True):
            print(f".TP\n{option(argument)}\n{text(argument.get('abstract'))}")


def verbs(command, path):
    """The verbs of a command, and theirs."""
    for verb in command.get("subcommands", []):
        if verb["commandName"] == "help":
            continue
        names = path + [verb["commandName"]]
        print(f".SS {text(' '.join(names))}")
        print(text(verb.get("abstract")))
        if verb.get("discussion"):
            print(f".PP\n{text(verb['discussion'])}")
        arguments(verb)
        verbs(verb, names)


tool = json.load(sys.stdin)["command"]
name = tool["commandName"]
print(f'.TH {name.upper()} 1 "" Larder')
print(f".SH NAME\n{text(name)} \\- {text(tool.get('abstract'))}")
print(f".SH SYNOPSIS\n.B {text(name)}\n\\fIverb\\fR [\\fIoptions\\fR]")
print(".SH DESCRIPTION")
for paragraph in (tool.get("discussion") or "").split("\n\n"):
    # Examples are indented, and keep their lines.
    print(f".PP\n.nf\n{text(paragraph)}\n.fi" if paragraph.startswith("  ") else f".PP\n{text(paragraph)}")
print(".SH OPTIONS")
arguments(tool)
print(".SH VERBS")
verbs(tool, [])
