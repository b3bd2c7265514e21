"""Every cause of a jit fast-path miss / retrace / relower / recompile, measured.
Columns: cppmiss = C++ fast path missed (Python entered) | infer = _infer_params cache missed | TRACE = user's Python body
really re-executed | lower = StableHLO rebuilt | COMPILE = compile_or_get_cached called | xla = backend really compiled.
Each case: warm(), warm(), then counters reset, then test().  Usage: python retrace_causes.py
Imported, it only defines: CASES is a list of (name, function returning (warm, test)), C the counters, measure(function) runs one.
The counters are wrappers around functions inside JAX, installed on import; the cases share caches, so run them in order, in one process."""
import os, sys, gc, threading, functools, collections, tempfile, warnings, dataclasses
os.environ.setdefault('XLA_FLAGS', '--xla_force_host_platform_device_count=4')
warnings.filterwarnings('ignore')
import numpy as np, jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding as NS, PartitionSpec as P, SingleDeviceSharding as SDS
from jax._src import pjit as _pjit, compiler as _comp
from jax._src.interpreters import mlir as _mlir
C = collections.Counter()
NAME = 'target'
def _nm(fun): return getattr(fun, '__name__', getattr(getattr(fun, 'func', None), '__name__', str(fun)))
def _wrap(mod, name, key, pick):
    o = getattr(mod, name, None)
    if o is None: return False
    @functools.wraps(o)
    def w(*a, **k):
        try:
            if NAME in str(pick(a, k)): C[key] += 1
        except Exception: pass
        return o(*a, **k)
    setattr(mod, name, w); return True
_wrap(_pjit, '_infer_params', 'cppmiss', lambda a, k: _nm(a[0]))
_wrap(_pjit, '_trace_for_jit', 'infer', lambda a, k: _nm(a[0])) or _wrap(_pjit, '_infer_params_impl', 'infer', lambda a, k: _nm(a[0]))
_wrap(_mlir, 'lower_jaxpr_to_module', 'lower', lambda a, k: a[0] if a else k['module_name'])
_wrap(_comp, 'compile_or_get_cached', 'COMPILE', lambda a, k: (a[1] if len(a) > 1 else k['computation']).operation.attributes['sym_name'])
_wrap(_comp, 'backend_compile_and_load', 'xla', lambda a, k: a[1].operation.attributes['sym_name'])

def _dbl(v):
    if not isinstance(v, (jax.Array, np.ndarray)): return 0
    return v if jax.dtypes.issubdtype(v.dtype, jax.dtypes.prng_key) else v * 2
def mk(body=lambda *a, **k: jax.tree.map(_dbl, (a, k))):
    def target(*a, **k):
        C['TRACE'] += 1
        return body(*a, **k)
    return target
CASES = []
def case(name, expect=''):
    def d(f): CASES.append((name, f)); return f
    return d
A = lambda *s, dt='float32': jnp.ones(s, dt)
dev = jax.devices(); mesh = Mesh(np.array(dev), ('d',)); mesh2 = Mesh(np.array(dev).reshape(2, 2), ('a', 'b'))
def simple(name, w, t, **jk):
    def f():
        j = jax.jit(mk(), **jk); return (lambda: j(*w()) if isinstance(w(), tuple) else j(w())), (lambda: j(*t()) if isinstance(t(), tuple) else j(t()))
    CASES.append((name, f))
simple('control: same args', lambda: A(4), lambda: A(4))
simple('shape (last partial batch)', lambda: A(4, 2), lambda: A(3, 2))
simple('rank', lambda: A(4), lambda: A(4, 1))
simple('dtype f32->bf16', lambda: A(4), lambda: A(4, dt='bfloat16'))
simple('weak_type strong->weak array', lambda: jnp.float32(1), lambda: jnp.asarray(1.0))
simple('array f32[] -> python float', lambda: jnp.float32(1), lambda: 1.0)
simple('python float -> python int', lambda: 1.0, lambda: 1)
simple('python int -> bool', lambda: 1, lambda: True)
simple('python float value 1.0->2.0 (traced)', lambda: 1.0, lambda: 2.0)
simple('np.float32 scalar -> python float', lambda: np.float32(1), lambda: 1.0)
simple('jax f32[] -> np.float32 scalar', lambda: jnp.float32(1), lambda: np.float32(1))
simple('jax array -> np.ndarray same aval', lambda: A(4), lambda: np.ones(4, 'float32'))
simple('np f32 -> np f64 (x64 off)', lambda: np.ones(4, 'float32'), lambda: np.ones(4, 'float64'))
simple('static value 3 -> 4', lambda: (A(4), 3), lambda: (A(4), 4), static_argnums=1)
simple('static equal-hash new tuple', lambda: (A(4), tuple([1, 2])), lambda: (A(4), tuple([1, 2])), static_argnums=1)
class IdHash: pass
simple('static arg identity hash, new obj', lambda: (A(4), IdHash()), lambda: (A(4), IdHash()), static_argnums=1)
class BadHash:
    def __init__(s): s.h = np.random.randint(1 << 30)
    def __hash__(s): return s.h
    def __eq__(s, o): return isinstance(o, BadHash)
simple('static arg eq but unstable hash', lambda: (A(4), BadHash()), lambda: (A(4), BadHash()), static_argnums=1)
simple('static arg 1 -> 1.0 (== and same hash!)', lambda: (A(4), 1), lambda: (A(4), 1.0), static_argnums=1)
simple('static arg True -> 1', lambda: (A(4), True), lambda: (A(4), 1), static_argnums=1)
simple('static arg unhashable (list)', lambda: (A(4), 1), lambda: (A(4), [1]), static_argnums=1)
simple('pytree list -> tuple', lambda: ([A(4), A(4)],), lambda: ((A(4), A(4)),))
simple('pytree list length +1', lambda: ([A(4)],), lambda: ([A(4)] * 2,))
simple('dict key order (plain dict)', lambda: ({'a': A(4), 'b': A(2)},), lambda: ({'b': A(2), 'a': A(4)},))
simple('OrderedDict key order', lambda: (collections.OrderedDict(a=A(4), b=A(4)),), lambda: (collections.OrderedDict(b=A(4), a=A(4)),))
simple('dict new key', lambda: ({'a': A(4)},), lambda: ({'a': A(4), 'b': A(4)},))
simple('None -> array', lambda: (A(4), None), lambda: (A(4), A(4)))
@jax.tree_util.register_pytree_node_class
class Node:
    def __init__(s, v, step): s.v, s.step = v, step
    def tree_flatten(s): return (s.v,), s.step
    @classmethod
    def tree_unflatten(c, aux, ch): return c(ch[0], aux)
simple('pytree aux data changes (step int)', lambda: (Node(A(4), 1),), lambda: (Node(A(4), 2),))
simple('pytree aux data id-eq object', lambda: (Node(A(4), IdHash()),), lambda: (Node(A(4), IdHash()),))
simple('typed key -> raw uint32 key', lambda: jax.random.key(0), lambda: jax.random.PRNGKey(0))
simple('PRNG impl threefry -> rbg', lambda: jax.random.key(0), lambda: jax.random.key(0, impl='rbg'))
simple('uncommitted -> committed same device', lambda: A(4), lambda: jax.device_put(A(4), dev[0]))
simple('committed dev0 -> dev1', lambda: jax.device_put(A(4), dev[0]), lambda: jax.device_put(A(4), dev[1]))
simple('NamedSharding P(d) -> P()', lambda: jax.device_put(A(4), NS(mesh, P('d'))), lambda: jax.device_put(A(4), NS(mesh, P())))
simple('P(d) -> P(d,None) same placement', lambda: jax.device_put(A(4, 4), NS(mesh, P('d'))), lambda: jax.device_put(A(4, 4), NS(mesh, P('d', None))))
simple('1-dev NamedSharding vs SingleDevice', lambda: jax.device_put(A(4), SDS(dev[0])), lambda: jax.device_put(A(4), NS(Mesh(np.array(dev[:1]), ('d',)), P())))
simple('new equal Mesh object', lambda: jax.device_put(A(4), NS(mesh, P('d'))), lambda: jax.device_put(A(4), NS(Mesh(np.array(jax.devices()), ('d',)), P('d'))))
simple('mesh axis renamed, same placement', lambda: jax.device_put(A(4), NS(mesh, P('d'))), lambda: jax.device_put(A(4), NS(Mesh(np.array(dev), ('z',)), P('z'))))
simple('memory kind device -> host', lambda: jax.device_put(A(4), dev[0]), lambda: jax.device_put(A(4), SDS(dev[0], memory_kind=[m.kind for m in dev[0].addressable_memories() if m.kind != dev[0].default_memory().kind][0])))
@case('layout (major_to_minor) differs')
def _():
    try: from jax.experimental.layout import Format, Layout; mkf = lambda o: Format(Layout(o), SDS(dev[0]))
    except ImportError: from jax.experimental.layout import Layout, DeviceLocalLayout as D; mkf = lambda o: Layout(D(o), SDS(dev[0]))
    a = jax.device_put(A(4, 8), mkf((0, 1))); b = jax.device_put(A(4, 8), mkf((1, 0))); j = jax.jit(mk()); return (lambda: j(a)), (lambda: j(b))
@case('kwargs vs positional')
def _(): 
    def target(x): C['TRACE'] += 1; return x * 2
    j = jax.jit(target); return (lambda: j(A(4))), (lambda: j(x=A(4)))
@case('kwargs order')
def _(): j = jax.jit(mk()); return (lambda: j(a=A(4), b=A(2))), (lambda: j(b=A(2), a=A(4)))
@case('default arg omitted vs explicit')
def _():
    def target(x, s=2.0): C['TRACE'] += 1; return x * s
    j = jax.jit(target); return (lambda: j(A(4))), (lambda: j(A(4), 2.0))
@case('static_argname positional -> keyword')
def _():
    def target(x, n): C['TRACE'] += 1; return x * n
    j = jax.jit(target, static_argnames='n'); return (lambda: j(A(4), 2)), (lambda: j(A(4), n=2))
@case('new lambda/def each iteration')
def _(): return (lambda: jax.jit(mk())(A(4))), (lambda: jax.jit(mk())(A(4)))
@case('jax.jit(same f) again in loop')
def _(): t = mk(); return (lambda: jax.jit(t)(A(4))), (lambda: jax.jit(t)(A(4)))
@case('jax.jit(same f, donate) again in loop')
def _(): t = mk(); return (lambda: jax.jit(t, donate_argnums=0)(A(4))), (lambda: jax.jit(t, donate_argnums=0)(A(4)))
@case('jax.jit(same f, static_argnums) in loop')
def _(): t = mk(); return (lambda: jax.jit(t, static_argnums=1)(A(4), 2)), (lambda: jax.jit(t, static_argnums=1)(A(4), 2))
@case('same f, other jit options (donate)')
def _(): t = mk(); a = jax.jit(t); b = jax.jit(t, donate_argnums=0); return (lambda: a(A(4))), (lambda: b(A(4)))
@case('same f, other jit options (out_shardings)')
def _(): t = mk(lambda x: x * 2); a = jax.jit(t); b = jax.jit(t, out_shardings=NS(mesh, P())); return (lambda: a(jax.device_put(A(4), NS(mesh, P('d'))))), (lambda: b(jax.device_put(A(4), NS(mesh, P('d')))))
@case('same f, compiler_options differ')
def _(): t = mk(); a = jax.jit(t); b = jax.jit(t, compiler_options={'xla_embed_ir_in_executable': True}); return (lambda: a(A(4))), (lambda: b(A(4)))
@case('functools.partial re-made each call')
def _(): t = mk(); return (lambda: jax.jit(functools.partial(t, A(4)))(A(4))), (lambda: jax.jit(functools.partial(t, A(4)))(A(4)))
class M:
    def target(self, x): C['TRACE'] += 1; return x * 2
@case('jax.jit(obj.method) re-made, same obj')
def _(): m = M(); return (lambda: jax.jit(m.target)(A(4))), (lambda: jax.jit(m.target)(A(4)))
@case('jax.jit(obj.method), new equal object')
def _(): return (lambda: jax.jit(M().target)(A(4))), (lambda: jax.jit(M().target)(A(4)))
class MS:
    s = 2.0
    @functools.partial(jax.jit, static_argnums=0)
    def target(self, x): C['TRACE'] += 1; return x * self.s
@case('@jit method static self, new object')
def _(): return (lambda: MS().target(A(4))), (lambda: MS().target(A(4)))
@case('STALE: static self attribute mutated')
def _():
    m = MS()
    def t():
        m.s = 5.0; r = m.target(A(4)); return 'STALE' if float(r[0]) == 2.0 else 'fresh'
    return (lambda: m.target(A(4))), t
@case('STALE: closure python value changed')
def _():
    b = {'v': 2.0}; j = jax.jit(mk(lambda x: x * b['v']))
    def t():
        b['v'] = 5.0; return 'STALE' if float(j(A(4))[0]) == 2.0 else 'fresh'
    return (lambda: j(A(4))), t
@case('STALE: closure jnp array rebound')
def _():
    b = {'v': A(4)}; j = jax.jit(mk(lambda x: x * b['v']))
    def t():
        b['v'] = A(4) * 9; return 'STALE' if float(j(A(4))[0]) == 1.0 else 'fresh'
    return (lambda: j(A(4))), t
@case('STALE: np closure mutated in place')
def _():
    b = np.ones(4, 'float32'); j = jax.jit(mk(lambda x: x * b))
    def t():
        b[:] = 9; return 'STALE' if float(j(A(4))[0]) == 1.0 else 'fresh'
    return (lambda: j(A(4))), t
@case('f garbage-collected, re-created')
def _():
    def w(): j = jax.jit(mk()); j(A(4)); del j; gc.collect()
    return w, w
@case('jax.clear_caches()')
def _():
    j = jax.jit(mk())
    def t(): jax.clear_caches(); j(A(4))
    return (lambda: j(A(4))), t
@case('f.clear_cache()')
def _():
    j = jax.jit(mk())
    def t(): j.clear_cache(); j(A(4))
    return (lambda: j(A(4))), t
@case('infer_params LRU evicted (2100 other traces), .trace()')
def _():
    j = jax.jit(mk())
    def t():
        s0 = dict(C); g = jax.jit(lambda x: x)
        for i in range(2100): g.eval_shape(jax.ShapeDtypeStruct((i,), 'float32'))
        C.clear(); j.trace(A(4))
    return (lambda: j(A(4))), t
@case('AOT lower().compile() then call')
def _():
    j = jax.jit(mk()); return (lambda: j.lower(A(4)).compile()), (lambda: j(A(4)))
@case('eval_shape(f.jit) then call')
def _():
    j = jax.jit(mk()); return (lambda: j.eval_shape(A(4))), (lambda: j(A(4)))
@case('call from a new thread')
def _():
    j = jax.jit(mk())
    def t(): th = threading.Thread(target=lambda: j(A(4))); th.start(); th.join()
    return (lambda: j(A(4))), t
def ctx(name, cm, arg=lambda: A(4)):
    def f():
        j = jax.jit(mk(lambda x: x * 2)); 
        def t():
            with cm(): j(a)
        a = arg(); return (lambda: j(a)), t
    CASES.append((name, f))
from jax._src import config as _cfg
ctx('ctx: enable_x64 (f32 arg)', lambda: (jax.enable_x64(True) if hasattr(jax, 'enable_x64') else jax.experimental.enable_x64()))
ctx('ctx: default_matmul_precision', lambda: jax.default_matmul_precision('float32'))
ctx('ctx: debug_nans', lambda: jax.debug_nans(True))
ctx('ctx: numpy_rank_promotion', lambda: jax.numpy_rank_promotion('raise'))
ctx('ctx: numpy_dtype_promotion', lambda: jax.numpy_dtype_promotion('strict'))
ctx('ctx: default_device(dev1), uncommitted', lambda: jax.default_device(dev[1]))
ctx('ctx: default_prng_impl', lambda: jax.default_prng_impl('rbg'))
ctx('ctx: log_compiles', lambda: jax.log_compiles(True) if False else __import__('contextlib').nullcontext())
ctx('ctx: with mesh:', lambda: mesh)
if hasattr(jax, 'set_mesh'): ctx('ctx: jax.set_mesh', lambda: jax.set_mesh(mesh))
ctx('ctx: named_scope', lambda: jax.named_scope('foo'))
ctx('ctx: transfer_guard(log)', lambda: jax.transfer_guard('allow'))
ctx('ctx: checking_leaks', lambda: jax.checking_leaks())
ctx('ctx: explain_cache_misses', lambda: jax.explain_cache_misses(False) if hasattr(jax, 'explain_cache_misses') else _cfg.explain_cache_misses(False))
@case('called under grad (tracer args)')
def _(): j = jax.jit(mk(lambda x: x * 2)); return (lambda: j(A(4))), (lambda: jax.grad(lambda x: j(x).sum())(A(4)))
@case('called under grad, 2nd time')
def _(): j = jax.jit(mk(lambda x: x * 2)); g = lambda: jax.grad(lambda x: j(x).sum())(A(4)); return g, g
@case('called under vmap')
def _(): j = jax.jit(mk(lambda x: x * 2)); return (lambda: j(A(4))), (lambda: jax.vmap(j)(A(3, 4)))
@case('called inside another jit')
def _(): j = jax.jit(mk(lambda x: x * 2)); return (lambda: j(A(4))), (lambda: jax.jit(lambda x: j(x) + 1)(A(4)))
@case('FEEDBACK: weak-typed init, s=f(s) step 2')
def _():
    j = jax.jit(mk(lambda s: s + jnp.float32(1))); st = {}
    def w(): st['s'] = j(0.0)
    return w, (lambda: j(st['s']))
@case('FEEDBACK: uncommitted init, sharded out, step 2')
def _():
    o = NS(mesh, P('d')); j = jax.jit(mk(lambda s: jax.lax.with_sharding_constraint(s * 2, o))); st = {}
    def w(): st['s'] = j(A(4))
    return w, (lambda: j(st['s']))
@case('FEEDBACK: numpy init -> jax out, step 2')
def _():
    j = jax.jit(mk(lambda s: s * 2)); st = {}
    def w(): st['s'] = j(np.ones(4, 'float32'))
    return w, (lambda: j(st['s']))
@case('debug.print inside (effects), 3rd call')
def _(): j = jax.jit(mk(lambda x: (jax.debug.callback(lambda v: None, x), x * 2)[1])); return (lambda: j(A(4))), (lambda: j(A(4)))
@case('pure_callback inside, 3rd call')
def _(): j = jax.jit(mk(lambda x: jax.pure_callback(lambda v: np.asarray(v), x, x))); return (lambda: j(A(4))), (lambda: j(A(4)))
@case('C++ LRU cache evicted (capacity shrunk to 1)')
def _():
    old = _pjit._cpp_pjit_cache_fun_only; mkc = getattr(_pjit, 'make_jit_cpp_cache', None)
    _pjit._cpp_pjit_cache_fun_only = mkc(capacity=1) if mkc else __import__('jaxlib').xla_client._xla.PjitFunctionCache(capacity=1)
    j = jax.jit(mk()); g = jax.jit(lambda x: x); _pjit._cpp_pjit_cache_fun_only = old
    js = j
    def t():
        for i in range(1, 5): js(A(4))
    _pjit._cpp_pjit_cache_fun_only = old
    def w(): js(A(4)); js(A(3))
    return w, (lambda: (js(A(4)), js(A(3))))
@case('jax Ref (mutable array) argument, 3rd call')
def _():
    def target(r, x): C['TRACE'] += 1; r[...] = r[...] + x
    j = jax.jit(target); r = (jax.new_ref if hasattr(jax, 'new_ref') else jax._src.core.mutable_array)(A(4)); return (lambda: j(r, A(4))), (lambda: j(r, A(4)))
@case('donated arg already deleted (error)')
def _():
    j = jax.jit(mk(lambda x: x * 2), donate_argnums=0); x = A(4)
    def t(): a = A(4); j(a); C.clear(); j(a)
    return (lambda: j(A(4))), t
@case('compiled persistent-cache hit after clear_caches')
def _():
    d = tempfile.mkdtemp(); j = jax.jit(mk(lambda x: x * 2))
    jax.config.update('jax_compilation_cache_dir', d); jax.config.update('jax_persistent_cache_min_compile_time_secs', 0); jax.config.update('jax_persistent_cache_min_entry_size_bytes', -1)
    def t():
        jax.clear_caches(); j(A(4)); jax.config.update('jax_compilation_cache_dir', None)
    return (lambda: (jax.clear_caches(), j(A(4)))), t
COLS = ['cppmiss', 'infer', 'TRACE', 'lower', 'COMPILE', 'xla']
def measure(f):
    """Run one case: its counts, the error it ended in or None, and what it returned of a stale result or None."""
    error = note = None
    try:
        w, t = f(); w(); w(); jax.effects_barrier(); C.clear()
        r = t()
        if isinstance(r, str): note = r
    except Exception as e: error = type(e).__name__ + ': ' + str(e).split('\n')[0][:60]
    return dict(C), error, note
def main():
    print('# jax', jax.__version__, 'python', sys.version.split()[0], 'devices', len(dev))
    print('%-56s %s  class' % ('case', ' '.join('%7s' % c for c in COLS)))
    for name, f in CASES:
        c, error, note = measure(f)
        cls = ('RETRACE' if c.get('TRACE') else 'relower' if c.get('lower') else 'recompile' if c.get('COMPILE') else 'rekey (infer miss, trace cache hit)' if c.get('infer') else 'fast-path miss only' if c.get('cppmiss') else 'HIT')
        if c.get('TRACE') and c.get('COMPILE'): cls += '+recompile'
        elif c.get('TRACE') and not c.get('COMPILE'): cls += ' (no compile of it)'
        print('%-56s %s  %s %s' % (name, ' '.join('%7d' % c.get(k, 0) for k in COLS), cls, 'ERR ' + error if error else note or ''), flush=True)
if __name__ == '__main__': main()
