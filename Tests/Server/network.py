"""A network of the tests: hands on what comes to ports of 127.0.0.1 to other ports there, until it is cut.

Its arguments are the ports to which it leads. It listens on a free port for each of them, and prints `listening PORT …`
in their order when it does. SIGUSR1 cuts it: connections end, and new ones are refused. SIGUSR2 mends it. It ends when
its standard input does.
"""

import os
import signal
import socket
import sys
import threading

lock = threading.Lock()


def shut(sock):
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # It has ended.


def hand_on(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    shut(source)
    shut(sink)


class Line:
    def __init__(self, target):
        self.target, self.ends, self.is_open = target, [], False
        self.hold(0)
        self.port = self.sock.getsockname()[1]
        self.mend()

    def hold(self, port):
        """Has the port without listening there: connections are refused, and no other program takes the port."""
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(("127.0.0.1", port))

    def mend(self):
        with lock:
            if not self.is_open:
                self.sock.listen(128)
                threading.Thread(target=self.accept, args=(self.sock,), daemon=True).start()
            self.is_open = True

    def cut(self):
        with lock:
            if self.is_open:
                # Closing it alone would leave the thread that waits there to take one connection more.
                shut(self.sock)
                self.sock.close()
                self.hold(self.port)
            self.is_open = False
            for end in self.ends:
                shut(end)
            self.ends = []

    def accept(self, listener):
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            with lock:
                if self.sock is not listener:
                    return shut(near)
                self.ends += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=hand_on, args=pair, daemon=True).start()


lines = [Line(int(port)) for port in sys.argv[1:]]
signal.signal(signal.SIGUSR1, lambda *_: [line.cut() for line in lines])
signal.signal(signal.SIGUSR2, lambda *_: [line.mend() for line in lines])
# The thread that started this process may have had them blocked.
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1, signal.SIGUSR2})
print("listening", *(line.port for line in lines), flush=True)
sys.stdin.buffer.read()
os._exit(0)
