# Runs at the start of every Python under `jaxscope run`: the runner puts this directory first on
# PYTHONPATH, and site.py imports the first `sitecustomize` it finds. Leaves the interpreter as it
# would have been without us, except for one import hook that waits for jax.
#
# Any Python may find this file, because the program's children inherit PYTHONPATH: another version,
# another environment, without jaxscope. So: no import but os and sys (both are loaded already, so that
# sys.modules stays as it was), syntax that Python 2.7 reads, no word when jaxscope is not there.
import os
import sys


def _note(word):
    """Tell the runner, in a file named after this process, how far we came."""
    try:
        # No mkdir: where the run directory is gone, there is nobody to tell.
        path = os.path.join(os.environ["JAXSCOPE_RUN"], "boot", str(os.getpid()))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(fd, word)
        finally:
            os.close(fd)
    except Exception:
        pass


def _record():
    """jax is there: start recording in this process. Only KeyboardInterrupt and SystemExit get out."""
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
    except Exception as e:
        _note(b"failed\n")
        try:
            sys.stderr.write("jaxscope: not recording: %s: %s\n" % (type(e).__name__, e))  # noqa: UP031
        except Exception:
            pass  # stderr may be closed: the program must not notice


class _WhenJaxIsImported:
    """A sys.meta_path entry that watches one import and then goes.

    It stays until jax has been executed, not until it is looked for: `importlib.util.find_spec("jax")`
    is how many libraries ask whether JAX is installed, long before anybody imports it.
    """

    def __init__(self):
        self.searching = set()

    def find_spec(self, name, path=None, target=None):
        if name != "jax":
            return None
        from _thread import get_ident  # built in, and loaded in every Python

        thread = get_ident()
        if thread in self.searching:  # a user's own finder behind us asks all of sys.meta_path again
            return None
        self.searching.add(thread)
        try:
            spec = self._real_spec(name, path, target)
        finally:
            self.searching.discard(thread)
        loader = getattr(spec, "loader", None)
        if hasattr(loader, "exec_module") and not isinstance(loader, type):
            try:
                # The spec and its loader are the real ones; only this attribute is ours, and it is gone
                # before jax's first line runs. So jax.__spec__.loader is what it is in plain Python.
                loader.exec_module = _exec_module(self, loader)
            except Exception:
                pass  # a loader that takes no attribute: jax is imported, but not recorded
        return spec

    def _real_spec(self, name, path, target):
        finders = list(sys.meta_path)
        behind_us = finders[finders.index(self) + 1 :] if self in finders else finders
        for finder in behind_us:  # those before us have declined already
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                return spec
        return None


def _exec_module(hook, loader):
    def exec_module(module):
        if module.__name__ != "jax":  # zipimport shares one loader between modules
            return type(loader).exec_module(loader, module)
        loader.__dict__.pop("exec_module", None)
        loader.exec_module(module)
        if hook in sys.meta_path:
            sys.meta_path.remove(hook)
            _record()

    # This frame is a part of the import machinery and is to be treated as one: Python drops frames with
    # this file name from tracebacks and from warnings' stacklevel, so that an error or a warning while
    # jax is being imported reads as it does without us.
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    return exec_module


def _leave_no_trace():
    """Take this directory off sys.path. PYTHONPATH keeps it, so that children are followed too."""
    here = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)


try:
    _leave_no_trace()
    if sys.version_info >= (3, 11) and os.environ.get("JAXSCOPE_RUN"):
        _note(b"boot\n")
        if "jax" in sys.modules:  # a .pth file imports it
            _record()
        else:
            sys.meta_path.insert(0, _WhenJaxIsImported())
except Exception:
    pass

# The user's own sitecustomize, wherever it lies, is imported by the ordinary import statement: the
# module's lock is reentrant, and what stands in sys.modules when we return is what stays there. Where
# there is none, this raises ImportError(name="sitecustomize"), which site.py expects, and nothing stays.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401
