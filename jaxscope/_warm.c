/* The warm call of a watched function: one addition, one store, one comparison, and the function is called.

   The same as the two classes of capture/warm.py, which stand in where this was not built. In C because a call of
   a function of 300 arrays leaves little in the processor's caches, and every object that Python would touch
   between two of them has to come from far away.

   The interpreter's lock guards what is read and written here. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <structmember.h>

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

/* -- the module ---------------------------------------------------------------------------------------------- */

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "jaxscope._warm",
    .m_doc = "The warm call of a watched function.",
    .m_size = -1,
};

PyMODINIT_FUNC
PyInit__warm(void)
{
    due_name = PyUnicode_InternFromString("_jaxscope_due");
    PyObject *made = PyModule_Create(&module);
    if (made == NULL || due_name == NULL) {
        Py_XDECREF(made);
        return NULL;
    }
    PyObject *tick = PyType_FromModuleAndSpec(made, &tick_spec, NULL);
    PyObject *call = PyType_FromModuleAndSpec(made, &call_spec, NULL);
    if (tick == NULL || call == NULL || PyModule_AddObjectRef(made, "Tick", tick) < 0
        || PyModule_AddObjectRef(made, "Call", call) < 0) {
        Py_XDECREF(tick);
        Py_XDECREF(call);
        Py_DECREF(made);
        return NULL;
    }
    Tick_Type = (PyTypeObject *)tick; /* kept for as long as the interpreter runs */
    Py_DECREF(call);
    return made;
}
