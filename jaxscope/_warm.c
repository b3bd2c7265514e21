/* What runs again and again inside the program's own calls: the warm call of a watched function (one addition, one
   store, one comparison, and the function is called), and JAX's events of a call with effects.

   The same as the two classes of capture/warm.py and listeners.python_filter, which are used if this was not built.
   In C because a call of a function of 300 arrays leaves little in the processor's caches, and every object that
   Python would touch between two of them has to come from far away.

   The interpreter's lock guards what is read and written here. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

/* The frames of CPython 3.11 to 3.13 are read where they are. PyFrame_GetBack makes a Python object of each one, and
   the function that it belongs to then takes longer to return: together several us in a call with effects. */
#if !defined(Py_GIL_DISABLED) && PY_VERSION_HEX < 0x030E0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#define RAW_FRAMES 1
#else
#define RAW_FRAMES 0
#endif

/* -- Tick: a number that grows, and where it is stored ------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    unsigned long long value;
    unsigned long long due; /* the call that goes the long way; all after it, until this is set again */
    Py_ssize_t index;
    PyObject *cells; /* NULL: not set yet */
    Py_buffer view;  /* of cells, where they are writable unsigned 64-bit numbers; else view.obj is NULL */
} Tick;

static PyTypeObject *Tick_Type;

/* Store the value. 0, or -1 with an exception set. */
static int
tick_store(Tick *self)
{
    if (self->view.obj != NULL && self->index >= 0 && self->index < self->view.len / 8) {
        ((uint64_t *)self->view.buf)[self->index] = self->value;
        return 0;
    }
    if (self->cells == NULL) {
        PyErr_SetString(PyExc_AttributeError, "cells");
        return -1;
    }
    PyObject *cells = Py_NewRef(self->cells); /* what stores may put others in their place */
    PyObject *index = PyLong_FromSsize_t(self->index);
    PyObject *value = PyLong_FromUnsignedLongLong(self->value);
    int failed = index == NULL || value == NULL || PyObject_SetItem(cells, index, value) < 0;
    Py_XDECREF(index);
    Py_XDECREF(value);
    Py_DECREF(cells);
    return failed ? -1 : 0;
}

static PyObject *
tick_get_cells(Tick *self, void *Py_UNUSED(closure))
{
    if (self->cells == NULL) {
        PyErr_SetString(PyExc_AttributeError, "cells");
        return NULL;
    }
    return Py_NewRef(self->cells);
}

static int
tick_set_cells(Tick *self, PyObject *cells, void *Py_UNUSED(closure))
{
    if (cells == NULL) {
        PyErr_SetString(PyExc_AttributeError, "cells cannot be deleted");
        return -1;
    }
    Py_buffer view = {0};
    if (PyObject_CheckBuffer(cells)) {
        if (PyObject_GetBuffer(cells, &view, PyBUF_CONTIG | PyBUF_FORMAT) < 0) {
            PyErr_Clear(); /* read-only, or not in one piece: item by item, which says what is wrong */
            view.obj = NULL;
        }
        else if (view.itemsize != 8 || view.ndim != 1 || view.format == NULL || strcmp(view.format, "Q") != 0) {
            PyBuffer_Release(&view);
            view.obj = NULL;
        }
    }
    Py_buffer old = self->view;
    self->view = view;
    PyObject *before = self->cells;
    self->cells = Py_NewRef(cells);
    Py_XDECREF(before);
    if (old.obj != NULL) {
        PyBuffer_Release(&old);
    }
    return 0;
}

static int
tick_traverse(Tick *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->cells);
    return 0;
}

static int
tick_clear(Tick *self)
{
    if (self->view.obj != NULL) {
        PyBuffer_Release(&self->view);
    }
    Py_CLEAR(self->cells);
    return 0;
}

static void
tick_dealloc(Tick *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    tick_clear(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMemberDef tick_members[] = {
    {"value", T_ULONGLONG, offsetof(Tick, value), 0, NULL},
    {"due", T_ULONGLONG, offsetof(Tick, due), 0, NULL},
    {"index", T_PYSSIZET, offsetof(Tick, index), 0, NULL},
    {NULL},
};

static PyGetSetDef tick_getset[] = {
    {"cells", (getter)tick_get_cells, (setter)tick_set_cells, NULL, NULL},
    {NULL},
};

static PyType_Slot tick_slots[] = {
    {Py_tp_doc, "A number, and where it is stored each time it grows."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, tick_dealloc},
    {Py_tp_traverse, tick_traverse},
    {Py_tp_clear, tick_clear},
    {Py_tp_members, tick_members},
    {Py_tp_getset, tick_getset},
    {0, NULL},
};

static PyType_Spec tick_spec = {
    .name = "jaxscope._warm.Tick",
    .basicsize = sizeof(Tick),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = tick_slots,
};

/* -- Call: stands for a function, and counts its calls ------------------------------------------------------- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    PyObject *counter; /* a Tick; NULL: nothing records */
} Call;

static PyObject *due_name;

static PyObject *
call_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Call *self = (Call *)callable;
    Tick *counter = (Tick *)self->counter;
    if (counter != NULL) {
        counter->value++;
        if (tick_store(counter) < 0) {
            return NULL;
        }
        counter = (Tick *)self->counter; /* a store that is not to memory may have changed it */
        if (counter != NULL && counter->value >= counter->due) {
            PyObject *due = PyObject_GetAttr(callable, due_name);
            if (due == NULL) {
                return NULL;
            }
            PyObject *result = PyObject_Vectorcall(due, args, nargsf, names);
            Py_DECREF(due);
            return result;
        }
    }
    if (self->function == NULL) {
        PyErr_SetString(PyExc_TypeError, "stands for no function yet");
        return NULL;
    }
    PyObject *function = Py_NewRef(self->function);
    PyObject *result = PyObject_Vectorcall(function, args, nargsf, names);
    Py_DECREF(function);
    return result;
}

static PyObject *
call_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(kwargs))
{
    Call *self = (Call *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = call_vectorcall;
    }
    return (PyObject *)self;
}

static PyObject *
call_get_counter(Call *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(self->counter == NULL ? Py_None : self->counter);
}

static int
call_set_counter(Call *self, PyObject *counter, void *Py_UNUSED(closure))
{
    if (counter == Py_None) {
        counter = NULL;
    }
    else if (counter == NULL || !PyObject_TypeCheck(counter, Tick_Type)) {
        PyErr_SetString(PyExc_TypeError, "a counter is a Tick or None");
        return -1;
    }
    PyObject *before = self->counter;
    self->counter = Py_XNewRef(counter);
    Py_XDECREF(before);
    return 0;
}

static int
call_traverse(Call *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(self->function);
    Py_VISIT(self->counter);
    return 0;
}

static int
call_clear(Call *self)
{
    Py_CLEAR(self->function);
    Py_CLEAR(self->counter);
    return 0;
}

static void
call_dealloc(Call *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    call_clear(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMemberDef call_members[] = {
    {"_jaxscope_function", T_OBJECT_EX, offsetof(Call, function), 0, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Call, vectorcall), READONLY, NULL},
    {NULL},
};

static PyGetSetDef call_getset[] = {
    {"_jaxscope_counter", (getter)call_get_counter, (setter)call_set_counter, NULL, NULL},
    {NULL},
};

static PyType_Slot call_slots[] = {
    {Py_tp_doc, "Stands for a function, and counts its calls."},
    {Py_tp_new, call_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, call_dealloc},
    {Py_tp_traverse, call_traverse},
    {Py_tp_clear, call_clear},
    {Py_tp_members, call_members},
    {Py_tp_getset, call_getset},
    {0, NULL},
};

static PyType_Spec call_spec = {
    .name = "jaxscope._warm.Call",
    .basicsize = sizeof(Call),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = call_slots,
};

/* -- EventFilter: JAX's listener for test events -------------------------------------------------------------- */

/* A function with effects misses JAX's fast path in each call, and each call sends the same five events. Between
   two of them the program removes Python's objects and code from the processor's caches, so that each step that
   Python takes costs up to 1 us. The same as listeners.python_filter, which is used if this was not built. */

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *probe;
    PyObject *miss, *copied, *put, *put_done; /* the names of the events */
    PyObject *call_code, *copy_code;          /* the functions of JAX in which it sends the first two */
    PyObject *jaxpr, *arguments;              /* local variables of the first */
    PyObject *arrays, *devices;               /* local variables of the second */
    PyObject *devices_of;                     /* of an array */
    PyObject *received;                       /* a Tick that counts the events */
} EventFilter;

#define FILTER_OBJECTS 13

/* The attributes that are read, with their interned names. */
enum { CALLS, HANDLERS, KNOWN, NESTED, OPEN, PREVIOUS, PUTS, RECEIVED, REPEATS, STEPPING, WAITING, WAYS_TO_CALLBACKS, ATTRIBUTES };
static const char *const attribute_texts[ATTRIBUTES] = {
    "calls", "handlers", "known", "nested", "open", "previous", "puts", "received", "repeats", "stepping", "waiting", "ways_to_callbacks",
};
static PyObject *attribute_names[ATTRIBUTES];

static PyObject *
attribute(PyObject *owner, int name) /* a new reference; NULL: an exception is set, or the owner is NULL */
{
    return owner == NULL ? NULL : PyObject_GetAttr(owner, attribute_names[name]);
}

/* Whether an attribute is false: 1, 0, or -1 with an exception set. */
static int
is_false(PyObject *owner, int name)
{
    PyObject *value = attribute(owner, name);
    int found = value == NULL ? -1 : PyObject_Not(value);
    Py_XDECREF(value);
    return found;
}

static int
is_name(PyObject *name, PyObject *other)
{
    return name == other || (PyUnicode_Check(name) && PyUnicode_Compare(name, other) == 0);
}

#if RAW_FRAMES

typedef _PyInterpreterFrame Frame; /* no reference: valid while its function runs */

static Frame *
complete(Frame *frame) /* the frame, or the first one above it that runs Python code */
{
    while (frame != NULL && _PyFrame_IsIncomplete(frame)) {
        frame = frame->previous;
    }
    return frame;
}

/* Frame ``number``, counted from the frame that called JAX's listener, which is 1. NULL: there is none. */
static Frame *
frame_at(Py_ssize_t number)
{
    PyThreadState *thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030D0000
    Frame *frame = complete(thread->current_frame);
#else
    Frame *frame = complete(thread->cframe->current_frame);
#endif
    while (frame != NULL && number-- > 1) {
        frame = complete(frame->previous);
    }
    return frame;
}

static PyObject *
code_of(Frame *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return frame->f_executable;
#else
    return (PyObject *)frame->f_code;
#endif
}

/* The value of a local variable of a frame: a new reference, or NULL with an exception set. */
static PyObject *
local_of(Frame *frame, PyObject *name)
{
    PyCodeObject *code = (PyCodeObject *)code_of(frame);
    for (int i = 0; i < code->co_nlocalsplus; i++) {
        if (is_name(PyTuple_GET_ITEM(code->co_localsplusnames, i), name)) {
            PyObject *value = frame->localsplus[i];
            value = value != NULL && PyCell_Check(value) ? PyCell_GET(value) : value;
            if (value != NULL) {
                return Py_NewRef(value);
            }
        }
    }
    PyErr_SetObject(PyExc_NameError, name);
    return NULL;
}

#else

typedef PyFrameObject Frame; /* no reference either: its function's frame keeps it */

static Frame *
frame_at(Py_ssize_t number)
{
    PyFrameObject *frame = PyEval_GetFrame();
    while (frame != NULL && number-- > 1) {
        frame = PyFrame_GetBack(frame);
        Py_XDECREF(frame); /* the interpreter's own frame keeps it */
    }
    return frame;
}

static PyObject *
code_of(Frame *frame)
{
    PyObject *code = (PyObject *)PyFrame_GetCode(frame);
    Py_DECREF(code); /* the frame keeps it */
    return code;
}

static PyObject *
local_of(Frame *frame, PyObject *name)
{
    return PyFrame_GetVar(frame, name);
}

#endif

static int
runs(Frame *frame, PyObject *code)
{
    return frame != NULL && code_of(frame) == code;
}

/* Store new references to two local variables of a frame. 0, or -1 with an exception set. */
static int
two_locals(Frame *frame, PyObject *first, PyObject *second, PyObject **one, PyObject **two)
{
    *one = local_of(frame, first);
    *two = *one == NULL ? NULL : local_of(frame, second);
    if (*two == NULL) {
        Py_CLEAR(*one);
        return -1;
    }
    return 0;
}

/* Count a call that missed the fast path if ``RepeatedMisses.known`` has it, as ``RepeatedMisses.counted`` does.
   1: counted; 0: not; -1 with an exception set. */
static int
count_known(PyObject *probe, PyObject *jaxpr, PyObject *arguments)
{
    int counted = -1;
    PyObject *repeats = attribute(probe, REPEATS), *known = attribute(repeats, KNOWN);
    PyObject *key = known == NULL ? NULL : PyLong_FromVoidPtr(jaxpr);
    PyObject *repeat = key == NULL ? NULL : PyObject_GetItem(known, key);
    PyObject *of = NULL;
    if (repeat == NULL) {
        if (PyErr_ExceptionMatches(PyExc_KeyError)) {
            PyErr_Clear();
            counted = 0;
        }
        goto done;
    }
    if (!PyTuple_Check(repeat) || PyTuple_GET_SIZE(repeat) < 4 || !PyTuple_Check(arguments)) {
        counted = 0;
        goto done;
    }
    of = PyObject_CallNoArgs(PyTuple_GET_ITEM(repeat, 0));
    PyObject *types = PyTuple_GET_ITEM(repeat, 1), *misses = PyTuple_GET_ITEM(repeat, 3);
    if (of == NULL) {
        goto done;
    }
    Py_ssize_t size = PyTuple_GET_SIZE(arguments);
    counted = of == jaxpr && PyTuple_Check(types) && PyTuple_GET_SIZE(types) == size
              && PyObject_TypeCheck(misses, Tick_Type);
    for (Py_ssize_t i = 0; counted && i < size; i++) {
        counted = PyTuple_GET_ITEM(types, i) == (PyObject *)Py_TYPE(PyTuple_GET_ITEM(arguments, i));
    }
    if (counted) {
        ((Tick *)misses)->value++;
        counted = tick_store((Tick *)misses) < 0 ? -1 : 1;
    }
done:
    Py_XDECREF(of);
    Py_XDECREF(repeat);
    Py_XDECREF(key);
    Py_XDECREF(known);
    Py_XDECREF(repeats);
    return counted;
}

/* 1: the event is handled. 0: it is not. -1: it is not, and an exception is set. */
static int
on_miss(EventFilter *self)
{
    int handled = 0;
    PyObject *jaxpr = NULL, *arguments = NULL, *calls = NULL, *nested = NULL;
    Frame *frame = frame_at(2);
    if (runs(frame, self->call_code)) {
        PyObject *stepping = attribute(self->probe, STEPPING);
        handled = stepping == NULL ? -1 : stepping == Py_None;
        Py_XDECREF(stepping);
        calls = handled == 1 ? attribute(self->probe, CALLS) : NULL;
        handled = handled == 1 ? is_false(calls, OPEN) : handled;
        nested = handled == 1 ? attribute(self->probe, NESTED) : NULL;
        handled = handled == 1 ? is_false(nested, WAITING) : handled;
        if (handled == 1) {
            handled = two_locals(frame, self->jaxpr, self->arguments, &jaxpr, &arguments) < 0
                          ? -1
                          : count_known(self->probe, jaxpr, arguments);
        }
    }
    Py_XDECREF(jaxpr);
    Py_XDECREF(arguments);
    Py_XDECREF(calls);
    Py_XDECREF(nested);
    return handled;
}

static int
on_copied(EventFilter *self)
{
    int handled = 0;
    PyObject *arrays = NULL, *devices = NULL, *fast_arrays = NULL, *fast_devices = NULL;
    Frame *frame = frame_at(2);
    if (!runs(frame, self->copy_code)) {
        return 0;
    }
    handled = -1;
    if (two_locals(frame, self->arrays, self->devices, &arrays, &devices) < 0) {
        goto done;
    }
    fast_arrays = PySequence_Fast(arrays, "no sequence");
    fast_devices = fast_arrays == NULL ? NULL : PySequence_Fast(devices, "no sequence");
    if (fast_devices == NULL) {
        goto done;
    }
    handled = PySequence_Fast_GET_SIZE(fast_arrays) == PySequence_Fast_GET_SIZE(fast_devices);
    for (Py_ssize_t i = 0; handled == 1 && i < PySequence_Fast_GET_SIZE(fast_arrays)
                           && i < PySequence_Fast_GET_SIZE(fast_devices);
         i++) {
        PyObject *its = PyObject_CallOneArg(self->devices_of, PySequence_Fast_GET_ITEM(fast_arrays, i));
        handled = its == NULL ? -1
                              : PyObject_RichCompareBool(its, PySequence_Fast_GET_ITEM(fast_devices, i), Py_EQ);
        Py_XDECREF(its);
    }
done:
    Py_XDECREF(fast_arrays);
    Py_XDECREF(fast_devices);
    Py_XDECREF(arrays);
    Py_XDECREF(devices);
    return handled;
}

/* Whether JAX copies the arguments of a callback here (DevicePuts.ways_to_callbacks). */
static int
on_way_to_callback(PyObject *puts)
{
    int found = 0;
    PyObject *ways = attribute(puts, WAYS_TO_CALLBACKS);
    PyObject *each = ways == NULL ? NULL : PyObject_GetIter(ways), *way;
    Py_XDECREF(ways);
    while (!found && each != NULL && (way = PyIter_Next(each)) != NULL) {
        if (PyTuple_Check(way) && PyTuple_GET_SIZE(way) == 3) {
            Py_ssize_t above = PyLong_AsSsize_t(PyTuple_GET_ITEM(way, 0));
            found = runs(frame_at(above), PyTuple_GET_ITEM(way, 2))
                    && runs(frame_at(above + 1), PyTuple_GET_ITEM(way, 1));
        }
        Py_DECREF(way);
    }
    Py_XDECREF(each);
    return PyErr_Occurred() ? -1 : found;
}

static int
on_put(EventFilter *self, int done)
{
    PyObject *puts = attribute(self->probe, PUTS);
    int handled = puts == NULL ? -1 : puts != Py_None;
    handled = handled == 1 ? is_false(puts, OPEN) : handled;
    if (handled == 1 && !done) {
        handled = on_way_to_callback(puts);
    }
    Py_XDECREF(puts);
    return handled;
}

static int
handle_event(EventFilter *self, PyObject *name)
{
    PyObject *previous = attribute(self->probe, PREVIOUS);
    Py_XDECREF(previous);
    if (previous != Py_None) {
        return previous == NULL ? -1 : 0;
    }
    if (is_name(name, self->miss)) {
        return on_miss(self);
    }
    if (is_name(name, self->put_done)) {
        return on_put(self, 1);
    }
    if (is_name(name, self->put)) {
        return on_put(self, 0);
    }
    if (is_name(name, self->copied)) {
        PyObject *puts = attribute(self->probe, PUTS);
        Py_XDECREF(puts);
        return puts == NULL ? -1 : puts == Py_None ? 0 : on_copied(self);
    }
    PyObject *handlers = attribute(self->probe, HANDLERS);
    int known = handlers == NULL ? -1 : PySequence_Contains(handlers, name);
    Py_XDECREF(handlers);
    return known < 0 ? -1 : !known;
}

static PyObject *
filter_vectorcall(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *names)
{
    EventFilter *self = (EventFilter *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (count < 1 || (names != NULL && PyTuple_GET_SIZE(names) > 0)) {
        PyErr_SetString(PyExc_TypeError, "expects the name of an event and its arguments");
        return NULL;
    }
    ((Tick *)self->received)->value++;
    if (handle_event(self, args[0]) == 1) {
        Py_RETURN_NONE;
    }
    PyErr_Clear(); /* what Probe.received does fails, too, and is reported */
    PyObject *rest = PyTuple_New(count - 1);
    for (Py_ssize_t i = 1; rest != NULL && i < count; i++) {
        PyTuple_SET_ITEM(rest, i - 1, Py_NewRef(args[i]));
    }
    PyFrameObject *frame = PyEval_GetFrame();
    PyObject *result = rest == NULL ? NULL
                                    : PyObject_CallMethodObjArgs(self->probe, attribute_names[RECEIVED], args[0], rest,
                                                                 frame == NULL ? Py_None : (PyObject *)frame, NULL);
    Py_XDECREF(rest);
    Py_XDECREF(result);
    if (result == NULL) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
filter_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    EventFilter *self = (EventFilter *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = filter_vectorcall;
    if (!PyArg_ParseTuple(args, "O(OOOO)(OO)(OO)(OO)OO!", &self->probe, &self->miss, &self->copied, &self->put,
                          &self->put_done, &self->call_code, &self->copy_code, &self->jaxpr, &self->arguments,
                          &self->arrays, &self->devices, &self->devices_of, Tick_Type, &self->received)) {
        memset(&self->probe, 0, FILTER_OBJECTS * sizeof(PyObject *));
        Py_DECREF(self);
        return NULL;
    }
    for (int i = 0; i < FILTER_OBJECTS; i++) {
        Py_INCREF((&self->probe)[i]);
    }
    return (PyObject *)self;
}

static int
filter_traverse(EventFilter *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    for (int i = 0; i < FILTER_OBJECTS; i++) {
        Py_VISIT((&self->probe)[i]);
    }
    return 0;
}

static void
filter_dealloc(EventFilter *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    for (int i = 0; i < FILTER_OBJECTS; i++) {
        Py_XDECREF((&self->probe)[i]);
    }
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

static PyMemberDef filter_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(EventFilter, vectorcall), READONLY, NULL},
    {NULL},
};

static PyType_Slot filter_slots[] = {
    {Py_tp_doc, "Receives JAX's test events and passes to a Probe those that need more than a count."},
    {Py_tp_new, filter_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, filter_dealloc},
    {Py_tp_traverse, filter_traverse},
    {Py_tp_members, filter_members},
    {0, NULL},
};

static PyType_Spec filter_spec = {
    .name = "jaxscope._warm.EventFilter",
    .basicsize = sizeof(EventFilter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = filter_slots,
};

/* -- the module ---------------------------------------------------------------------------------------------- */

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "jaxscope._warm",
    .m_doc = "The warm call of a watched function, and the events of a call with effects.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__warm(void)
{
    due_name = PyUnicode_InternFromString("_jaxscope_due");
    PyObject *made = PyModule_Create(&module);
    int named = 1;
    for (int i = 0; i < ATTRIBUTES; i++) {
        attribute_names[i] = PyUnicode_InternFromString(attribute_texts[i]);
        named = named && attribute_names[i] != NULL;
    }
    if (made == NULL || due_name == NULL || !named) {
        Py_XDECREF(made);
        return NULL;
    }
    PyObject *tick = PyType_FromModuleAndSpec(made, &tick_spec, NULL);
    PyObject *call = PyType_FromModuleAndSpec(made, &call_spec, NULL);
    PyObject *filter = PyType_FromModuleAndSpec(made, &filter_spec, NULL);
    if (tick == NULL || call == NULL || filter == NULL || PyModule_AddIntConstant(made, "VERSION", 2) < 0
        || PyModule_AddObjectRef(made, "Tick", tick) < 0
        || PyModule_AddObjectRef(made, "Call", call) < 0 || PyModule_AddObjectRef(made, "EventFilter", filter) < 0) {
        Py_XDECREF(tick);
        Py_XDECREF(call);
        Py_XDECREF(filter);
        Py_DECREF(made);
        return NULL;
    }
    Tick_Type = (PyTypeObject *)tick; /* kept for as long as the interpreter runs */
    Py_DECREF(call);
    Py_DECREF(filter);
    return made;
}
