"""Runs agentbox many times at once, and tells how much memory each needed at most and what its result was.

    flood.py COUNT AGENTBOX ARG...

Nobody reads a result until it is being printed, by when all else has been done. Prints a line for each: KiB of
memory, status, exit code, bytes of stdout, whether it was cut, bytes of it in the result; then one result.
"""
import json
import select
import subprocess
import sys

WAIT_S = 120


def peak_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def main():
    count, command = int(sys.argv[1]), sys.argv[2:]
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        for one in running:
            if not select.select([one.stdout], [], [], WAIT_S)[0]:
                sys.exit("no output")
        peaks = [peak_kib(one.pid) for one in running]
        for one, peak in zip(running, peaks):
            text = one.communicate(timeout=WAIT_S)[0].decode()
            is_ = json.loads(text)
            print(peak, is_["status"], is_["exit_code"], is_["stdout_bytes"], is_["stdout_truncated"],
                  len(is_["stdout"]))
        print(text, end="")
    finally:
        for one in running:
            if one.poll() is None:
                one.kill()


main()
