/* Samples the stack of the main thread: which code it runs, about every `period` seconds, later less often.

   A thread of its own waits, and asks the interpreter to call `take_sample` in the main thread (Py_AddPendingCall).
   The interpreter does so between two instructions, when a call into C returns, when a function begins, or when a
   loop repeats. A Python thread cannot do this: it only runs when the main thread gives up the interpreter's lock,
   which is mostly within calls of JAX, so that it would see the time of Python code in the calls after it (measured:
   13 of 13 seconds of a loop of Python code).

   To take a sample, it runs no Python code, so that no signal handler of the program runs within it, and no exception
   leaves it. After a sample it calls the function of `call_after`, if this is due: Python code, which may let signal
   handlers run. The thread blocks all signals: they are for the program's threads.

   The interpreter's lock guards all that `take_sample` and the functions of the module use. `mutex` guards what the
   thread reads, too. */

#define PY_SSIZE_T_CLEAN
#include <patchlevel.h>
#if PY_VERSION_HEX < 0x030D0000
#define Py_BUILD_CORE 1 /* for `eval_breaker`, see `ask` */
#endif
#include <Python.h>
#if PY_VERSION_HEX < 0x030D0000
#include <internal/pycore_interp.h>
#define Py_IsFinalizing _Py_IsFinalizing
#endif
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_FRAMES 256
#define MOST_SAMPLES 4096 /* that are kept until they are taken */
#define SLOWER_AFTER 250 /* so many samples, the next ones are twice as far apart */
#define LONGEST_PERIOD 0.2
#define STACK_BYTES (256 * 1024)
#define LONG_CALL 0.0005 /* seconds, where the system does not tell whether a thread sleeps */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopping = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static int running;
static double period;      /* seconds between two samples, on average */
static pid_t process;      /* the process whose stacks are sampled: not a child that it forks */
static atomic_int asked;   /* whether a sample was asked for and is not taken yet */
static double asked_at;    /* when */
static int slept;          /* whether the main thread slept then; -1: unknown */
static int state = -1;     /* on Linux, the open file with the state of the main thread */
static dev_t state_device; /* and what it is: the program may close all files, and open another with this number */
static ino_t state_inode;
static double sampled_at;  /* when the last sample was taken */
static long taken;         /* the number of samples so far */
static PyObject *samples;  /* a list; NULL: nothing is sampled */
static unsigned int seed;  /* of the random numbers of `halved` */
static PyObject *callback; /* the function of `call_after`; NULL: none */
static double due;         /* when it is to be called */

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* -- in the main thread -------------------------------------------------------------------------------------- */

/* Return (seconds, slept, code, instruction, code, instruction, ...) for the running frames, innermost first. */
static PyObject *
running_frames(double seconds, int slept)
{
    PyObject *items[2 + 2 * MOST_FRAMES];
    Py_ssize_t n = 0, failed = 0;
    items[n++] = PyFloat_FromDouble(seconds);
    items[n++] = PyBool_FromLong(slept);
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    for (int depth = 0; frame != NULL && depth < MOST_FRAMES; depth++) {
        items[n++] = (PyObject *)PyFrame_GetCode(frame);
        items[n++] = PyLong_FromLong(PyFrame_GetLasti(frame));
        PyFrameObject *caller = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = caller;
    }
    Py_XDECREF(frame);
    PyObject *found = PyTuple_New(n);
    for (Py_ssize_t i = 0; i < n; i++) {
        failed += items[i] == NULL;
        if (found != NULL) {
            PyTuple_SET_ITEM(found, i, items[i]);
        }
        else {
            Py_XDECREF(items[i]);
        }
    }
    if (failed) {
        Py_CLEAR(found);
    }
    return found;
}

/* Keep one sample of each two that follow each other, by chance, with the seconds of both. Return them, a new list;
   NULL with an exception set. */
static PyObject *
halved(PyObject *all)
{
    PyObject *kept = PyList_New(0);
    for (Py_ssize_t i = 0; kept != NULL && i + 1 < PyList_GET_SIZE(all); i += 2) {
        PyObject *pair[2] = {PyList_GET_ITEM(all, i), PyList_GET_ITEM(all, i + 1)};
        PyObject *chosen = pair[rand_r(&seed) > RAND_MAX / 2];
        double seconds = 0;
        for (int k = 0; k < 2; k++) {
            seconds += PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(pair[k], 0));
        }
        PyObject *first = PyFloat_FromDouble(seconds);
        PyObject *copy = first != NULL ? PyTuple_New(PyTuple_GET_SIZE(chosen)) : NULL;
        if (copy == NULL) {
            Py_XDECREF(first);
            Py_CLEAR(kept);
            break;
        }
        PyTuple_SET_ITEM(copy, 0, first);
        for (Py_ssize_t k = 1; k < PyTuple_GET_SIZE(chosen); k++) {
            PyTuple_SET_ITEM(copy, k, Py_NewRef(PyTuple_GET_ITEM(chosen, k)));
        }
        int failed = PyList_Append(kept, copy);
        Py_DECREF(copy);
        if (failed) {
            Py_CLEAR(kept);
        }
    }
    return kept;
}

/* Call the function of `call_after`, which is due. Return -1 with an exception set, if it raises one: it is for the
   program, from a signal handler that ran meanwhile. */
static int
call_back(void)
{
    PyObject *function = callback;
    callback = NULL;
    PyObject *result = PyObject_CallNoArgs(function);
    Py_DECREF(function);
    Py_XDECREF(result);
    return result == NULL ? -1 : 0;
}

/* Called by the interpreter in the main thread. The seconds of a sample are those since the sample before it. */
static int
take_sample(void *Py_UNUSED(unused))
{
    double delay = now() - asked_at;
    int sleeping = slept >= 0 ? slept : delay > LONG_CALL;
    atomic_store(&asked, 0);
    if (samples == NULL || process != getpid()) {
        return 0;
    }
    int collects = PyGC_Disable(); /* a collection would run Python code */
    double t = now();
    PyObject *stack = running_frames(t - sampled_at, sleeping);
    if (stack != NULL) {
        PyList_Append(samples, stack);
        Py_DECREF(stack);
    }
    if (PyList_GET_SIZE(samples) >= MOST_SAMPLES) {
        PyObject *kept = halved(samples);
        if (kept != NULL) {
            Py_SETREF(samples, kept);
        }
    }
    if (++taken % SLOWER_AFTER == 0 && period < LONGEST_PERIOD) {
        pthread_mutex_lock(&mutex);
        period = 2 * period < LONGEST_PERIOD ? 2 * period : LONGEST_PERIOD;
        pthread_mutex_unlock(&mutex);
    }
    PyErr_Clear();
    sampled_at = t;
    if (collects) {
        PyGC_Enable();
    }
    if (callback == NULL || t < due) {
        return 0;
    }
    int failed = call_back();
    sampled_at += now() - t; /* the seconds of the callback are not the program's */
    return failed;
}

/* -- in the thread ------------------------------------------------------------------------------------------- */

/* Return whether `state` still is the file that `start` opened. */
static int
is_ours(void)
{
    struct stat found;
    return state >= 0 && fstat(state, &found) == 0 && found.st_dev == state_device && found.st_ino == state_inode;
}

/* Return whether the main thread sleeps: it waits for something else than the processor. -1: unknown. */
static int
sleeps(void)
{
    char text[256];
    ssize_t n = is_ours() ? pread(state, text, sizeof text - 1, 0) : -1;
    if (n <= 0) {
        return -1;
    }
    text[n] = 0;
    const char *end = strrchr(text, ')'); /* "812 (python) S 1 ...": the name may contain anything */
    return end != NULL && end[1] == ' ' ? end[2] != 'R' : -1;
}

/* Ask the interpreter for a sample, unless one was asked for and is not taken yet. */
static void
ask(void)
{
    if (atomic_exchange(&asked, 1)) {
        return;
    }
    slept = sleeps();
    asked_at = now();
    if (Py_AddPendingCall(take_sample, NULL) < 0) {
        atomic_store(&asked, 0);
        return;
    }
#if PY_VERSION_HEX < 0x030D0000
    /* Before Python 3.13 the main thread does not notice a call that another thread adds, until it takes the
       interpreter's lock again. */
    _Py_atomic_store_relaxed(&PyInterpreterState_Main()->ceval.eval_breaker, 1);
#endif
}

/* Wait until `until` by the clock of `now`, or until `stopping` is signalled. `mutex` is held. */
static void
wait_until(double until)
{
    struct timespec t;
#ifdef __APPLE__
    double left = until - now();
    left = left > 0 ? left : 0;
    t.tv_sec = (time_t)left;
    t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
    pthread_cond_timedwait_relative_np(&stopping, &mutex, &t);
#else
    t.tv_sec = (time_t)until;
    t.tv_nsec = (long)((until - (double)t.tv_sec) * 1e9);
    pthread_cond_timedwait(&stopping, &mutex, &t);
#endif
}

static void *
run(void *Py_UNUSED(unused))
{
    unsigned int numbers = (unsigned int)getpid();
    pthread_mutex_lock(&mutex);
    while (running && !Py_IsFinalizing()) {
        /* Not at equal distances, so that a loop of the same length is not always met at the same line */
        double until = now() + period * (0.5 + rand_r(&numbers) / (RAND_MAX + 1.0));
        while (running && now() < until) {
            wait_until(until);
        }
        if (running && !Py_IsFinalizing()) {
            ask();
        }
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* -- the module ---------------------------------------------------------------------------------------------- */

static PyObject *
stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    Py_CLEAR(samples);
    Py_CLEAR(callback);
    if (running && process == getpid()) {
        pthread_mutex_lock(&mutex);
        running = 0;
        pthread_cond_signal(&stopping);
        pthread_mutex_unlock(&mutex);
        Py_BEGIN_ALLOW_THREADS
        pthread_join(thread, NULL);
        Py_END_ALLOW_THREADS
    }
    running = 0;
    if (is_ours()) {
        close(state);
    }
    state = -1;
    Py_RETURN_NONE;
}

static PyObject *
start(PyObject *module, PyObject *seconds)
{
    double wanted = PyFloat_AsDouble(seconds);
    if (wanted == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    PyObject *stopped = stop(module, NULL);
    Py_XDECREF(stopped);
    samples = PyList_New(0);
    if (samples == NULL) {
        return NULL;
    }
    period = wanted;
    process = getpid();
    seed = (unsigned int)process;
    running = 1;
    taken = 0;
    atomic_store(&asked, 0);
#ifdef __linux__
    char name[64];
    snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int)process); /* that of the main thread */
    state = open(name, O_RDONLY | O_CLOEXEC);
    struct stat opened;
    if (state >= 0 && fstat(state, &opened) == 0) {
        state_device = opened.st_dev;
        state_inode = opened.st_ino;
    }
#endif
    sampled_at = now();
    pthread_mutex_init(&mutex, NULL); /* a forked child may have got it locked */
#ifdef __APPLE__
    pthread_cond_init(&stopping, NULL);
#else
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&stopping, &clock);
    pthread_condattr_destroy(&clock);
#endif
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &small, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small);
    if (failed) {
        running = 0;
        Py_CLEAR(samples);
        errno = failed;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    Py_RETURN_NONE;
}

static PyObject *
take(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    PyObject *empty = PyList_New(0);
    if (samples == NULL || empty == NULL) {
        return empty;
    }
    PyObject *all = samples;
    samples = empty;
    return all;
}

static PyObject *
call_after(PyObject *Py_UNUSED(module), PyObject *args)
{
    double seconds;
    PyObject *function;
    if (!PyArg_ParseTuple(args, "dO", &seconds, &function)) {
        return NULL;
    }
    due = now() + seconds;
    Py_XSETREF(callback, Py_NewRef(function));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(start_doc,
             "start(seconds, /)\n--\n\n"
             "Begin to sample the stack of the main thread, on average each time so many seconds have passed. After many\n"
             "samples, the next ones are further apart.\n\n"
             "Raises:\n  OSError: no thread can be started.");
PyDoc_STRVAR(take_doc,
             "take()\n--\n\n"
             "Return the samples since the last call, and forget them. Each is a tuple: the seconds since the sample\n"
             "before it; whether the thread slept, because it waited for a device, a lock or a file; then\n"
             "for each running frame, innermost first, its code object and the offset of its instruction in bytes.");
PyDoc_STRVAR(call_after_doc,
             "call_after(seconds, function, /)\n--\n\n"
             "Call `function()` once in the main thread, between two instructions of any Python code, after the first\n"
             "sample that is taken in `seconds` or later. It replaces the function of an earlier call.");
PyDoc_STRVAR(stop_doc, "stop()\n--\n\nEnd it, and forget the samples that were not taken.");

static PyMethodDef methods[] = {
    {"start", start, METH_O, start_doc},
    {"take", take, METH_NOARGS, take_doc},
    {"call_after", call_after, METH_VARARGS, call_after_doc},
    {"stop", stop, METH_NOARGS, stop_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_stacks", "Sample the stack of the main thread.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__stacks(void)
{
    return PyModule_Create(&definition);
}
