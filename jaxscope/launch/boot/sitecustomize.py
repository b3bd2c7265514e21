# Runs at the start of every Python process under `jaxscope run`, which puts this directory first on
# PYTHONPATH: Python's site.py imports the first `sitecustomize` that it finds. It leaves the interpreter
# unchanged, except for one exit handler and one import hook that waits for jax.
#
# Any Python may find this file, because child processes of the program inherit PYTHONPATH: another
# version, or another environment in which jaxscope is not installed. So it leaves no module in
# sys.modules except os and sys (which are loaded already), its syntax is valid in Python 2.7, and it
# prints nothing if jaxscope is not installed.
import os
import sys


def _note(word):
    """Append a word to the file of this process in the run's directory boot/, for `jaxscope run` to read:
    boot (this file ran), jax (jax was imported), no jaxscope (it is not installed in this environment),
    failed (an exception prevented the recording)."""
    try:
        # The directory is not created: if the program removed the run directory, nothing is to be written.
        path = os.path.join(os.environ["JAXSCOPE_RUN"], "boot", str(os.getpid()))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, word)
        finally:
            os.close(fd)
    except Exception:
        pass


def _record():
    """Start recording in this process, in which jax has just been imported. An error is printed to stderr,
    not raised. Nothing is printed if jaxscope is not installed in this environment."""
    try:
        _note(b"jax\n")
        try:
            from jaxscope.capture.session import start_from_environment
        except ImportError as e:
            if (getattr(e, "name", None) or "").partition(".")[0] == "jaxscope":
                _note(b"no jaxscope\n")  # the Python of another environment: no message in the program
                return
            raise
        start_from_environment()
        # _end, which was registered before all handlers of the program, ends the recording instead.
        _atexit("unregister", getattr(sys.modules["jaxscope.capture.session"], "stop", None))
    except Exception as e:
        _note(b"failed\n")
        try:
            sys.stderr.write("jaxscope: not recording: %s: %s\n" % (type(e).__name__, e))  # noqa: UP031
        except Exception:
            pass  # stderr may be closed: the program must not notice


def _end():
    """End the recording when Python exits. This atexit handler was registered before the handlers of the
    program, and so runs after these."""
    stop = getattr(sys.modules.get("jaxscope.capture.session"), "stop", None)
    try:
        if stop is not None:
            stop("exit")
    except Exception:
        pass  # the program is over, and its exit code is its own


def _atexit(verb, function):
    """Call ``atexit.register(function)`` or ``atexit.unregister(function)``: ``verb`` is the name of the
    method. Then remove the module atexit from sys.modules, unless it was there before."""
    known = "atexit" in sys.modules
    import atexit  # built in, and the handlers belong to the interpreter, not to the module

    getattr(atexit, verb)(function)
    if not known:
        del sys.modules["atexit"]


def _leave_no_trace():
    """Remove the directory of this file from sys.path, so that the program sees its own sys.path. PYTHONPATH
    keeps the directory, so that child processes are recorded, too."""
    here = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)


try:
    if os.environ.get("JAXSCOPE_RUN"):
        from _jaxscope_when_jax import WhenJaxIsImported

        del sys.modules["_jaxscope_when_jax"]
    _leave_no_trace()
    if sys.version_info >= (3, 11) and os.environ.get("JAXSCOPE_RUN"):
        _note(b"boot\n")
        _atexit("register", _end)
        if "jax" in sys.modules:  # a .pth file imports it
            _record()
        else:
            sys.meta_path.insert(0, WhenJaxIsImported(_record))
except Exception:
    pass

# Import the user's own sitecustomize, if there is one. This works inside the import of this file, because
# the lock of a module is reentrant, and Python keeps the module that is in sys.modules at the end. If there
# is none, this raises ImportError(name="sitecustomize"), which site.py expects, and no module stays.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401
