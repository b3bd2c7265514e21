# Waits for `import jax`, and calls a function once when jax has been imported. The start-up file
# sitecustomize.py in this directory uses it, so the same rules apply: it imports only sys, and its
# syntax is valid in Python 2.7.
import sys


class WhenJaxIsImported:
    """An entry of sys.meta_path that calls the function ``record`` once, when jax has been imported. Before
    this call, the entry removes itself from sys.meta_path.

    Args:
      record: called without arguments after jax has been imported.
    """

    def __init__(self, record):
        self.record = record
        self.searching = set()

    def find_spec(self, name, path=None, target=None):
        """Return the spec of jax that the other finders find, with a loader that calls ``record`` after the
        import. None for any other module, or if jax is not found."""
        if name != "jax":
            return None
        from _thread import get_ident  # built in, and loaded in every Python

        thread = get_ident()
        if thread in self.searching:  # a user's own finder, which we call below, searches sys.meta_path again
            return None
        self.searching.add(thread)
        try:
            spec = self._real_spec(name, path, target)
        finally:
            self.searching.discard(thread)
        loader = getattr(spec, "loader", None)
        if hasattr(loader, "exec_module") and not isinstance(loader, type):
            try:
                # The spec and its loader are the real ones. Only this attribute is set by jaxscope, and it
                # is removed before the first line of jax runs, so that jax.__spec__.loader is the same as
                # without jaxscope.
                loader.exec_module = _exec_module(self, loader)
            except Exception:
                pass  # the loader accepts no attributes: jax is imported, but not recorded
        return spec

    def _real_spec(self, name, path, target):
        """Return the spec from the first finder after this entry that finds the module; None if none does."""
        finders = list(sys.meta_path)
        behind_us = finders[finders.index(self) + 1 :] if self in finders else finders
        for finder in behind_us:  # the finders before this one have not found jax
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                return spec
        return None


def _exec_module(hook, loader):
    """Return a replacement for ``loader.exec_module``. It imports jax as ``loader`` does, removes itself from
    ``loader`` and ``hook`` from sys.meta_path, and calls ``hook.record()``."""

    def exec_module(module):
        if module.__name__ != "jax":  # zipimport shares one loader between modules
            return type(loader).exec_module(loader, module)
        loader.__dict__.pop("exec_module", None)
        loader.exec_module(module)
        # Not at a search: many libraries call importlib.util.find_spec("jax") and do not import it.
        if hook in sys.meta_path:
            sys.meta_path.remove(hook)
            hook.record()

    # Python leaves out frames with this file name from tracebacks and from the stacklevel of warnings, so
    # that an error or a warning during the import of jax has the same text as without jaxscope.
    exec_module.__code__ = exec_module.__code__.replace(co_filename="<frozen importlib._bootstrap>")
    return exec_module
