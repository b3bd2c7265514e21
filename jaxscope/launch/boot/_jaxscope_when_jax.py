# Waits for `import jax`, and calls back once when jax has been executed. Used by the start-up file
# beside it, so the same holds: nothing but sys, and syntax that Python 2.7 reads.
import sys


class WhenJaxIsImported:
    """A sys.meta_path entry that watches one import and then goes.

    It stays until jax has been executed, not until it is looked for: `importlib.util.find_spec("jax")`
    is how many libraries ask whether JAX is installed, long before anybody imports it.
    """

    def __init__(self, record):
        self.record = record
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
            hook.record()

    # This frame is a part of the import machinery and is to be treated as one: Python drops frames with
    # this file name from tracebacks and from warnings' stacklevel, so that an error or a warning while
    # jax is being imported reads as it does without us.
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    return exec_module
