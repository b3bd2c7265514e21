# Runs at the start of every Python under `jaxscope run`: the runner puts this directory first on
# PYTHONPATH, and site.py imports the first `sitecustomize` it finds. Leaves the interpreter as it
# would have been without us, except for one import hook that waits for jax.
#
# Any Python may find this file, because the program's children inherit PYTHONPATH: another version,
# another environment, without jaxscope. So: no import that stays in sys.modules but os and sys
# (both are loaded already), syntax that Python 2.7 reads, no word when jaxscope is not there.
import os
import sys


def _note(word):
    """Tell the runner, in a file named after this process, how far we came."""
    try:
        # No mkdir: where the run directory is gone, there is nobody to tell.
        path = os.path.join(os.environ["JAXSCOPE_RUN"], "boot", str(os.getpid()))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, word)
        finally:
            os.close(fd)
    except Exception:
        pass


def _record():
    """Start recording in this process, as jax is imported. Only KeyboardInterrupt and SystemExit get out."""
    try:
        _note(b"jax\n")
        try:
            from jaxscope.capture.session import start_from_environment
        except ImportError as e:
            if (getattr(e, "name", None) or "").partition(".")[0] == "jaxscope":
                _note(b"no jaxscope\n")  # another environment's Python: not ours to complain about
                return
            raise
        start_from_environment()
        # _end was registered long before: it ends the recording last.
        _atexit("unregister", getattr(sys.modules["jaxscope.capture.session"], "stop", None))
    except Exception as e:
        _note(b"failed\n")
        try:
            sys.stderr.write("jaxscope: not recording: %s: %s\n" % (type(e).__name__, e))  # noqa: UP031
        except Exception:
            pass  # stderr may be closed: the program must not notice


def _end():
    """End the recording. The program's own atexit handlers ran before: those registered last run first."""
    stop = getattr(sys.modules.get("jaxscope.capture.session"), "stop", None)
    try:
        if stop is not None:
            stop("exit")
    except Exception:
        pass  # the program is over, and its exit code is its own


def _atexit(verb, function):
    known = "atexit" in sys.modules
    import atexit  # built in, and the handlers belong to the interpreter, not to the module

    getattr(atexit, verb)(function)
    if not known:
        del sys.modules["atexit"]


def _leave_no_trace():
    """Take this directory off sys.path. PYTHONPATH keeps it, so that children are followed too."""
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

# The user's own sitecustomize, wherever it is, is imported by the ordinary import statement: the
# module's lock is reentrant, and what stands in sys.modules when we return is what stays there. Where
# there is none, this raises ImportError(name="sitecustomize"), which site.py expects, and nothing stays.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401
