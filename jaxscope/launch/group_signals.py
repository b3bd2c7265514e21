"""Find out whether a signal was sent only to this process or to its whole process group.

This process is ``jaxscope run``, which has started the user's program. ``kill PID`` and the stop of a
container signal only this process, which must forward the signal to the program. Ctrl-C, ``timeout`` and
Slurm signal every process of the group. The program then has the signal already, and a second
KeyboardInterrupt would break the clean-up of the first. The kernel does not report which case it is. So there
is a third process in the group, the witness. It blocks all signals, so that a signal to the group stays
pending in the witness, where it can be seen. The witness also kills the program if ``jaxscope run`` is killed
by SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket

from jaxscope.launch.detached import fork_apart

ASK, GUARD, LEAVE = b"?", b"g", b"q"  # the messages to the witness
MASK_BYTES = 16  # signal numbers stay below 128 everywhere
PID_BYTES = 8
PATIENCE_S = 1.0


class Witness:
    """The connection to the witness, a process of the same process group that blocks all signals. A signal to
    the group stays pending in the witness. A signal to ``jaxscope run`` alone does not reach the witness."""

    def __init__(self, link: socket.socket, pid: int) -> None:
        self._link: socket.socket | None = link
        self.pid = pid

    @classmethod
    def start(cls) -> Witness | None:
        """Start the witness process. Return None if no process can be created; then ``jaxscope run`` forwards
        every signal to the program."""
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
        """Make the witness kill the process ``program`` (the user's program) if ``jaxscope run`` is killed by
        SIGKILL."""
        self._say(GUARD + program.to_bytes(PID_BYTES, "little"))

    def seen(self) -> set[int]:
        """Return the numbers of the signals that were sent to the whole process group since the last call.
        Empty if the witness cannot be asked."""
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
        """End the witness process. Call this method after the user's program has ended."""
        self._say(LEAVE)
        self._lose()
        with contextlib.suppress(OSError):
            os.waitpid(self.pid, 0)

    def _say(self, message: bytes) -> bool:
        """Send ``message`` to the witness. Return whether this succeeded."""
        try:
            if self._link is not None:
                self._link.sendall(message)
                return True
        except OSError:  # perhaps the witness was killed with the rest of the group
            self._lose()
        return False

    def _lose(self) -> None:
        """Close the connection. From now on, ``_say`` returns False."""
        link, self._link = self._link, None
        if link is not None:
            link.close()


def _testify(link: socket.socket) -> None:
    """Run as the witness process: answer messages from ``link`` until the message LEAVE, or until ``jaxscope
    run`` ends and the connection closes.

    The answer to ASK is a bit mask of the pending signals. GUARD is followed by the process id of the
    program, which is killed if ``jaxscope run`` ends without LEAVE.
    """
    program = 0
    while True:
        word = link.recv(1)
        if word == ASK:
            mask = 0
            for number in signal.sigpending():
                mask |= 1 << number
                # Removes the signal from the pending ones, so that it is not reported again.
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
