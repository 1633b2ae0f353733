#!/usr/bin/env python3
"""A server for inside of a box and clients for outside, of one line that says what is wanted.

usage: published.py serve PORT [ADDRESS]    peer | digest | send N | hold | quit
       published.py ask PORT LINE           what is answered, once a server takes the connection
       published.py knock PORT              one try: taken, reset or refused
       published.py many PORT N             N connections at once, which all are held, then answered
       published.py upload PORT N           N bytes, then the end; prints both digests
       published.py download PORT N         N bytes; prints both digests
       published.py hold PORT FILE          once held, makes FILE; prints how the connection ends
       published.py flood PORT N            N connections, one after another, each reset at once
       published.py steal PORT              tries to listen there as well
       published.py free                    a port of 127.0.0.1 at which nobody listens
"""

import hashlib
import os
import socket
import struct
import sys
import threading
import time

BLOCK = hashlib.sha256(b"block").digest() * 2048
PATIENCE = 60


def pieces(count):
    while count > 0:
        piece = BLOCK[:min(count, len(BLOCK))]
        count -= len(piece)
        yield piece


def read_all(sock):
    digest, count = hashlib.sha256(), 0
    while data := sock.recv(65536):
        digest.update(data)
        count += len(data)
    return f"{count} {digest.hexdigest()}"


def read_line(sock):
    line = b""
    while not line.endswith(b"\n"):
        byte = sock.recv(1)
        if not byte:
            break
        line += byte
    return line.decode().split()


def answer(sock):
    try:
        match read_line(sock):
            case ["peer"]:
                sock.sendall(f"{sock.getpeername()[0]} {sock.getsockname()[0]}\n".encode())
            case ["digest"]:
                sock.sendall(read_all(sock).encode())
            case ["send", count]:
                for piece in pieces(int(count)):
                    sock.sendall(piece)
            case ["hold"]:
                sock.sendall(b"held\n")
                sock.sendall(b"released " + sock.recv(100))
            case ["quit"]:
                sock.sendall(b"bye\n")
                sock.shutdown(socket.SHUT_WR)
                while sock.recv(100):
                    pass
                os._exit(0)
        sock.close()
    except OSError:
        pass


def serve(port, address="127.0.0.1"):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.create_server((address, int(port)), family=family, backlog=256)
    print("listens", flush=True)
    while True:
        threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()


def connect(port):
    sock = socket.create_connection(("127.0.0.1", int(port)), PATIENCE)
    sock.settimeout(PATIENCE)
    return sock


def ask_once(port, line):
    with connect(port) as sock:
        sock.sendall(line.encode() + b"\n")
        sock.shutdown(socket.SHUT_WR)
        text = b""
        while data := sock.recv(65536):
            text += data
        return text.decode()


def ask(port, line):
    until = time.monotonic() + PATIENCE
    while True:
        try:
            print(ask_once(port, line), end="")
            return
        except ConnectionError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def knock(port):
    try:
        with connect(port) as sock:
            sock.sendall(b"peer\n")
            print("taken" if sock.recv(100) else "ended")
    except ConnectionRefusedError:
        print("refused")
    except ConnectionResetError:
        print("reset")


def many(port, count):
    socks = [connect(port) for _ in range(int(count))]
    for sock in socks:
        sock.sendall(b"hold\n")
    held = sum(sock.recv(100) == b"held\n" for sock in socks)
    released = 0
    for sock in socks:
        sock.sendall(b"x")
        released += sock.recv(100) == b"released x"
    print(held, released)


def upload(port, count):
    digest = hashlib.sha256()
    with connect(port) as sock:
        sock.sendall(b"digest\n")
        for piece in pieces(int(count)):
            sock.sendall(piece)
            digest.update(piece)
        sock.shutdown(socket.SHUT_WR)
        there = sock.makefile().read()
    print(there, f"{count} {digest.hexdigest()}", sep="\n")


def download(port, count):
    digest = hashlib.sha256()
    for piece in pieces(int(count)):
        digest.update(piece)
    with connect(port) as sock:
        sock.sendall(f"send {count}\n".encode())
        print(read_all(sock), f"{count} {digest.hexdigest()}", sep="\n")


def hold(port, file):
    with connect(port) as sock:
        sock.sendall(b"hold\n")
        assert sock.recv(100) == b"held\n"
        with open(file, "w", encoding="ascii"):
            pass
        try:
            print("data" if sock.recv(100) else "ended")
        except ConnectionResetError:
            print("reset")


def flood(port, count):
    for _ in range(int(count)):
        sock = connect(port)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


def steal(port):
    for option in (0, socket.SO_REUSEADDR, socket.SO_REUSEPORT):
        for address in ("127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            try:
                sock = socket.socket(family)
            except OSError:
                continue
            if option:
                sock.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                sock.bind((address, int(port)))
                sock.listen()
            except OSError:
                continue
            print("stolen", option, address)


def free():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        print(sock.getsockname()[1])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
