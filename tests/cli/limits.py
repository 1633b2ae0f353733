"""What the tests of the limits run inside the box: uses up one thing and reports how far it came.

    limits.py memory            touch memory page by page; each line: bytes touched, with the interpreter's own
    limits.py together N        the same in N children, in turn; the sum when the first of them has ended
    limits.py fork|threads      start processes or threads until one is refused: how many started
    limits.py burn SECONDS N    N busy processes for that wall time: the processors that they got
    limits.py spin N            N busy processes, without an end
    limits.py fill DIRECTORY... write files by pages until there is no space, one directory after the other
    limits.py pry               try to write everything in /sys/fs/cgroup: what could be written

Run it with -I -S, so that the interpreter is small.
"""
import errno
import json
import mmap
import os
import signal
import sys
import time

PAGE = mmap.PAGESIZE
STEP = 64 * PAGE


def own_memory():
    """This process's share of what it was charged for, but for the kernel's part."""
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss_Anon:"))


class Toucher:
    def __init__(self):
        self.room = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.room.madvise(mmap.MADV_NOHUGEPAGE)
        self.at = 0

    def step(self):
        for offset in range(self.at, self.at + STEP, PAGE):
            self.room[offset] = 1
        self.at += STEP


def memory():
    toucher = Toucher()
    base = own_memory()
    while toucher.at < len(toucher.room):
        toucher.step()
        os.write(1, b"%d\n" % (base + toucher.at))


def child_touches(asked, answers):
    """Says how much it has of its own, then touches one step for each byte that it gets."""
    toucher = Toucher()
    os.write(answers, b"%12d" % own_memory())
    while os.read(asked, 1):
        toucher.step()
        os.write(answers, b"%12d" % STEP)


def together(count):
    pipes = []
    for _ in range(count):
        asked, ask = os.pipe()
        answer, answers = os.pipe()
        if os.fork() == 0:
            os.close(ask)
            os.close(answer)
            for mine in pipes:
                os.close(mine[0])
                os.close(mine[1])
            child_touches(asked, answers)
            os._exit(0)
        os.close(asked)
        os.close(answers)
        pipes.append((ask, answer))
    total = own_memory() + sum(int(os.read(answer, 12)) for _, answer in pipes)
    while True:
        for ask, answer in pipes:
            try:
                os.write(ask, b"x")
                got = os.read(answer, 12)
            except BrokenPipeError:
                got = b""
            if not got:
                print(json.dumps({"bytes": total, "signal": os.waitstatus_to_exitcode(os.wait()[1])}), flush=True)
                for end, _ in pipes:
                    os.close(end)
                return
            total += int(got)


def fork():
    started = []
    while True:
        try:
            child = os.fork()
        except OSError as error:
            print(json.dumps({"started": len(started), "error": errno.errorcode[error.errno]}), flush=True)
            break
        if child == 0:
            signal.pause()
        started.append(child)
    for child in started:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def threads():
    import _thread
    started = 0
    lock = _thread.allocate_lock()
    lock.acquire()
    while True:
        try:
            _thread.start_new_thread(lock.acquire, ())
        except RuntimeError:
            break
        started += 1
    print(json.dumps({"started": started}), flush=True)
    os._exit(0)


def burn(seconds, count):
    """Each says its processor time through the pipe's end, as it is measured within the wall time."""
    reader, writer = os.pipe()
    begin = time.monotonic()
    for _ in range(count):
        if os.fork() == 0:
            first = time.process_time()
            while time.monotonic() - begin < seconds:
                pass
            os.write(writer, b"%12.6f" % (time.process_time() - first))
            os._exit(0)
    for _ in range(count):
        os.wait()
    wall = time.monotonic() - begin
    used = sum(float(os.read(reader, 12)) for _ in range(count))
    print(json.dumps({"used": used, "wall": wall, "processors": used / wall}), flush=True)


def spin(count):
    for _ in range(count - 1):
        if os.fork() == 0:
            break
    while True:
        pass


def fill(directories):
    """The free space before is what must fit in, to the page."""
    before = os.statvfs(directories[0])
    free = before.f_bavail * before.f_frsize
    written = 0
    ends = []
    for number, directory in enumerate(directories):
        # All but the last get an equal part, so that each of them is seen to count.
        most = free // len(directories) // PAGE * PAGE if number < len(directories) - 1 else sys.maxsize
        file = os.open(directory + "/filler", os.O_WRONLY | os.O_CREAT, 0o600)
        done = 0
        try:
            while done < most:
                done += os.write(file, b"x" * PAGE)
        except OSError as error:
            ends.append(errno.errorcode[error.errno])
        written += done
    after = os.statvfs(directories[0])
    print(json.dumps({"size": before.f_blocks * before.f_frsize, "free": free, "written": written, "ends": ends,
                      "left": after.f_bavail * after.f_frsize}), flush=True)


def pry():
    found = 0
    top = "/sys/fs/cgroup"
    for here, directories, files in os.walk(top):
        for name in files + ["agentbox-new"]:
            path = os.path.join(here, name)
            found += 1
            try:
                file = os.open(path, os.O_WRONLY | os.O_CREAT)
            except OSError:
                continue
            print("opened for writing:", path)
            try:
                os.write(file, b"0" if name in ("cgroup.procs", "tasks") else b"-1")
                print("written:", path)
            except OSError:
                pass
        for name in directories + ["sub"]:
            for call in (os.mkdir, os.rmdir):
                try:
                    call(os.path.join(here, name))
                    print("possible:", call.__name__, os.path.join(here, name))
                except OSError:
                    pass
    if os.path.isdir(top) and found < 10:
        print("only", found, "files to try")
    print("end", flush=True)


def main():
    way = sys.argv[1]
    if way == "fill":
        fill(sys.argv[2:])
    elif way == "burn":
        burn(float(sys.argv[2]), int(sys.argv[3]))
    else:
        {"memory": memory, "together": together, "fork": fork, "threads": threads, "spin": spin,
         "pry": pry}[way](*map(int, sys.argv[2:]))


main()
