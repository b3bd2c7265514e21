"""A process that does nothing but be in our process group, and so knows what the group was sent.

Owns two answers. Did a signal that reached us reach the whole group, or us alone? ``kill PID`` and a
container's stop reach us alone: the signal must be forwarded to the program. Ctrl-C, ``timeout`` and Slurm reach every
process: the program has the signal already, and a second one would be harm (a second KeyboardInterrupt
breaks the clean-up of the first). The kernel does not say which it was, but a third process with all
signals blocked finds it pending, or not. And: was the runner killed with SIGKILL? Then the program is
killed too, as ``kill -9`` on the program itself would have done.

Knows nothing of the program but its process id.
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
    """The runner's end of the witness."""

    def __init__(self, link: socket.socket, pid: int) -> None:
        self._link: socket.socket | None = link
        self.pid = pid

    @classmethod
    def start(cls) -> Witness | None:
        """None where no process can be made: then nobody knows, and signals are forwarded."""
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
        """From now on the program does not outlive a runner that was killed."""
        self._say(GUARD + program.to_bytes(PID_BYTES, "little"))

    def seen(self) -> set[int]:
        """The signals that have reached the whole group since the last question."""
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
        """The program has ended: the witness goes too."""
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
                # The answer may be long past when the next question comes: each signal is told once.
                signal.sigwait([number])
            link.sendall(mask.to_bytes(MASK_BYTES, "little"))
        elif word == GUARD:
            program = int.from_bytes(link.recv(PID_BYTES, socket.MSG_WAITALL), "little")
        elif word == LEAVE:
            return
        else:
            if program:  # end of file without a farewell: the runner was killed
                os.kill(program, signal.SIGKILL)
            return
