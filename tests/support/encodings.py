"""A server that says what PostgreSQL says to whoever connects to it, of a database with any encoding."""

import shutil
import socket
import struct
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def _message(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("!i", len(content) + 4) + content


def _status(name: str, value: str) -> bytes:
    return _message(b"S", f"{name}\0{value}\0".encode())


@contextmanager
def answering(encoding: str) -> Iterator[str]:
    """The URL of a database of that encoding. The server lets everybody in, and answers nothing else."""
    welcome = _message(b"R", struct.pack("!i", 0)) + _status("server_encoding", encoding)
    welcome += _status("client_encoding", "UTF8") + _status("server_version", "15.0") + _message(b"Z", b"I")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))  # sockets need short paths
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / ".s.PGSQL.5432"))
        server.listen()

        def answer() -> None:
            while True:
                try:
                    client, _ = server.accept()
                except OSError:  # it was shut down
                    return
                with client:
                    client.recv(4096)
                    client.sendall(welcome)
                    client.recv(4096)  # that it leaves

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"postgresql://epsearch@/ledger?host={folder}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            shutil.rmtree(folder)
