"""A WebSocket server of the tests that says what a script says, be it nonsense.

Its argument is JSON: `subprotocol`, null for none, and `script`, a list of steps that each connection goes through:

    {"wait": N}          reads N texts of the client's
    {"text": TEXT}       sends a text; ID in it stands for the id of the client's last start, and CODE for the code by
                         which a client has closed a connection last, or none
    {"texts": [TEXT]}    sends such texts at once
    {"parts": [TEXT]}    sends a text in as many fragments, with "pause" as many seconds after each
    {"binary": TEXT}     sends bytes
    {"length": N}        begins a text of N bytes, and sends no more than its head
    {"flood": N}         sends a text of N bytes in fragments of 1 MiB
    {"raw": TEXT}        sends bytes that are no frame
    {"close": CODE}      closes the connection; null for no code; with "reason" as the reason
    {"cut": true}        ends the connection without closing it
    {"ping": TEXT}       sends a ping, and reads until it is answered
    {"sleep": N}         waits for N seconds
    {"deaf": N}          sends pings for N seconds, and reads nothing

After the last step it says nothing more. With a script of `null` it takes connections and does not even answer the
handshake. It prints `listening PORT`, and ends when its standard input does.
"""

import json
import os
import socket
import sys
import threading
import time

from websockets.frames import Opcode
from websockets.server import ServerProtocol

given = json.loads(sys.argv[1])
closes = ["none"]


def converse(sock):
    protocol = ServerProtocol(subprotocols=[given["subprotocol"]] if given["subprotocol"] else None)
    last = ""
    texts = 0
    pongs = []

    def flush():
        if data := b"".join(protocol.data_to_send()):
            sock.sendall(data)

    def read():
        nonlocal last, texts
        data = sock.recv(65536)
        if not data:
            raise ConnectionError
        protocol.receive_data(data)
        for event in protocol.events_received():
            if getattr(event, "opcode", None) is Opcode.TEXT:
                texts += 1
                message = json.loads(event.data)
                if message["type"] in ("start", "subscribe"):
                    last = message["id"]
            elif getattr(event, "opcode", None) is Opcode.PONG:
                pongs.append(event.data)
            elif getattr(event, "opcode", None) is Opcode.CLOSE:
                closes.append(str(protocol.close_rcvd.code))
            elif not hasattr(event, "opcode"):
                protocol.send_response(protocol.accept(event))
        flush()

    while protocol.handshake_exc is None and protocol.state.name == "CONNECTING":
        read()
    for step in given["script"]:
        if "wait" in step:
            while texts < step["wait"]:
                read()
            texts -= step["wait"]
        for text in [step["text"]] if "text" in step else step.get("texts", []):
            protocol.send_text(text.replace("ID", last).replace("CODE", closes[-1]).encode())
        if "parts" in step:
            parts = [part.replace("ID", last).encode() for part in step["parts"]]
            protocol.send_text(parts[0], fin=False)
            for place, part in enumerate(parts[1:], 2):
                if "pause" in step:
                    flush()
                    time.sleep(step["pause"])
                protocol.send_continuation(part, fin=place == len(parts))
        if "binary" in step:
            protocol.send_binary(step["binary"].encode())
        if "length" in step:
            flush()
            sock.sendall(b"\x81\x7f" + step["length"].to_bytes(8, "big"))
        if "flood" in step:
            piece, left = b" " * (1 << 20), step["flood"]
            protocol.send_text(piece, fin=False)
            while (left := left - len(piece)) > 0:
                protocol.send_continuation(piece, fin=left <= len(piece))
                flush()
        if "raw" in step:
            flush()
            sock.sendall(step["raw"].encode())
        if "close" in step:
            protocol.send_close(step["close"], step.get("reason", ""))
        if "cut" in step:
            raise ConnectionError
        if "ping" in step:
            protocol.send_ping(step["ping"].encode())
            flush()
            while step["ping"].encode() not in pongs:
                read()
        if "sleep" in step:
            time.sleep(step["sleep"])
        if "deaf" in step:
            end = time.monotonic() + step["deaf"]
            while time.monotonic() < end:
                protocol.send_ping(b"x" * 125)
                flush()
        flush()
    while True:
        read()


def serve(sock):
    try:
        if given["script"] is None:
            while sock.recv(65536):
                pass
        else:
            converse(sock)
    except OSError:
        pass  # The client has gone.
    finally:
        sock.close()


def accept(server):
    while True:
        sock, _ = server.accept()
        threading.Thread(target=serve, args=(sock,), daemon=True).start()


server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, args=(server,), daemon=True).start()
print("listening", server.getsockname()[1], flush=True)
sys.stdin.buffer.read()
os._exit(0)
