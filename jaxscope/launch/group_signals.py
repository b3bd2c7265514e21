"""Find out which signals were sent to our whole process group, by a process that only waits for signals.

``kill PID`` and a container's stop signal only this process: the signal must be forwarded to the program.
Ctrl-C, ``timeout`` and Slurm signal every process of the group: the program has the signal already, and a
second one would do harm (a second KeyboardInterrupt breaks the clean-up of the first). The kernel does not
report which it was, but a third process of the group with all signals blocked, the witness, finds the signal
pending or not. The witness also kills the program if the runner was killed by SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket

from jaxscope.launch.detached import fork_apart

ASK, GUARD, LEAVE = b"?", b"g", b"q"
MASK_BYTES = 16  # signal numbers stay below 128 everywhere
PID_BYTES = 8
PATIENCE_S = 1.0


class Witness:
    """The runner's end of the connection to the witness process."""

    def __init__(self, link: socket.socket, pid: int) -> None:
        self._link: socket.socket | None = link
        self.pid = pid

    @classmethod
    def start(cls) -> Witness | None:
        """Start the witness; None if no process can be created: then all signals are forwarded."""
        try:
            ours, theirs = socket.socketpair()
        except OSError:
            return None
        try:
            pid = fork_apart(lambda: _testify(theirs), keep=[theirs.fileno()])
        except OSError:
            ours.close()
            return None
        finally:
            theirs.close()
        ours.settimeout(PATIENCE_S)
        return cls(ours, pid)

    def guard(self, program: int) -> None:
        """Let the witness kill the program if the runner is killed."""
        self._say(GUARD + program.to_bytes(PID_BYTES, "little"))

    def seen(self) -> set[int]:
        """Return the signals that have reached the whole group since the last call."""
        answer = b""
        if self._say(ASK) and self._link is not None:
            try:
                while len(answer) < MASK_BYTES:
                    part = self._link.recv(MASK_BYTES - len(answer))
                    if not part:
                        raise OSError("the witness is gone")
                    answer += part
            except OSError:
                self._lose()
                return set()
        mask = int.from_bytes(answer, "little")
        return {number for number in range(1, MASK_BYTES * 8) if mask >> number & 1}

    def leave(self) -> None:
        """End the witness after the program has ended."""
        self._say(LEAVE)
        self._lose()
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, 0)

    def _say(self, message: bytes) -> bool:
        try:
            if self._link is not None:
                self._link.sendall(message)
                return True
        except OSError:  # killed with the rest of the group, perhaps
            self._lose()
        return False

    def _lose(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()


def _testify(link: socket.socket) -> None:
    program = 0
    while True:
        word = link.recv(1)
        if word == ASK:
            mask = 0
            for number in signal.sigpending():
                mask |= 1 << number
                # Removed, so that it is not reported again.
                signal.sigwait([number])
            link.sendall(mask.to_bytes(MASK_BYTES, "little"))
        elif word == GUARD:
            program = int.from_bytes(link.recv(PID_BYTES, socket.MSG_WAITALL), "little")
        elif word == LEAVE:
            return
        else:
            if program:  # end of file without LEAVE: the runner was killed
                os.kill(program, signal.SIGKILL)
            return
