/* The entry of the kernels from Python: CPython's limited API (one binary for all versions from 3.11) and NumPy's C
 * interface. It computes for plain arguments, contiguous float64 arrays of the right shapes, and leaves all others to
 * Python functions. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <stdlib.h>
#include <string.h>
#include "screwdyn.h"

typedef screwdyn_integer integer;
typedef struct screwdyn_kernel kernel;
typedef integer compiled(const void *context, const integer *arrays);
enum { MOST_ARRAYS = 64, ON_STACK = 1 << 15, CONTEXT = sizeof(struct screwdyn_context) };

/* The digest of the kernels' source, as text. */
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

static PyObject *out_name;
static PyTypeObject *entry_type;
static PyArray_Descr *float64; /* other objects that describe the same numbers are rare */

/* The copy of the kernels for this processor: the same operations, hence the same bits, in wider registers. */
static const kernel *kernels = screwdyn_kernels;
static const char *level = "portable";
#ifdef SCREWDYN_LEVELS
extern const kernel screwdyn_kernels_v3[], screwdyn_kernels_v4[];
#endif

static void choose(void)
{
#ifdef SCREWDYN_LEVELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma")) {
        kernels = screwdyn_kernels_v3;
        level = "x86-64-v3";
        if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd")) {
            kernels = screwdyn_kernels_v4;
            level = "x86-64-v4";
        }
    }
#endif
}

static const kernel *found(const char *name)
{
    const kernel *f = kernels;
    while (f->name && strcmp(f->name, name))
        f++;
    if (f->name)
        return f;
    PyErr_SetString(PyExc_KeyError, name);
    return NULL;
}

/* The `self` of a built-in function. */
typedef struct {
    PyObject_HEAD
    const kernel *of;    /* of which the context is the first argument; or null, and a function at an address */
    compiled *code;
    const void *context;
    int inputs, outputs;
    const struct screwdyn_shape *in, *out;
    struct screwdyn_shape *shapes; /* of a function at an address */
    PyObject *slow;      /* computes with other arguments; null: the function returns None for these */
    PyObject *owner;     /* of the code and of the context */
    const struct declared *arguments; /* by name; or null */
    PyObject *share;     /* makes a contribution from the results; or null */
    PyObject *text;      /* of the signature */
    PyMethodDef method;
} entry;

/* The result of a Python function, None if there is none, which is called with `first` before the arguments. */
static PyObject *other(PyObject *slow, PyObject *first, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *given, *named = NULL, *result = NULL;
    Py_ssize_t k, n = names ? PyTuple_Size(names) : 0, before = first != NULL;
    if (!slow)
        Py_RETURN_NONE;
    if (!(given = PyTuple_New(count + before)))
        return NULL;
    if (first)
        PyTuple_SetItem(given, 0, Py_NewRef(first));
    for (k = 0; k < count; k++)
        PyTuple_SetItem(given, k + before, Py_NewRef(args[k]));
    if (!n || (named = PyDict_New())) {
        for (k = 0; k < n && !PyDict_SetItem(named, PyTuple_GetItem(names, k), args[count + k]); k++)
            ;
        if (k == n)
            result = PyObject_Call(slow, given, named);
    }
    Py_DECREF(given);
    Py_XDECREF(named);
    return result;
}

static integer extent(int d, const integer *context) { return d < 0 ? context[~d] : d; }

/* Whether an object is a contiguous array of doubles with a shape, and its first entry and its size if so. */
static int plain(PyObject *x, const struct screwdyn_shape *shape, const integer *context, int flags, integer *at,
                 integer *size)
{
    PyArrayObject *a = (PyArrayObject *)x;
    integer n = sizeof(double);
    int k;
    if (!PyArray_CheckExact(x) || PyArray_NDIM(a) != shape->axes || PyArray_DESCR(a) != float64 ||
        (PyArray_FLAGS(a) & flags) != flags)
        return 0;
    for (k = 0; k < shape->axes; k++) {
        integer wanted = extent(shape->extents[k], context);
        if (PyArray_DIM(a, k) != wanted)
            return 0;
        n *= wanted;
    }
    *at = (integer)PyArray_DATA(a);
    *size = n;
    return 1;
}

/* Runs a kernel in scratch space of this call; -1 without memory, which the Python function reports. */
static integer run(const kernel *f, const integer *context, const integer *arrays)
{
    integer space[ON_STACK / sizeof(integer)], size = f->scratch(context), status;
    void *more;
#ifdef Py_GIL_DISABLED
    struct screwdyn_context own; /* other threads may call at the same time */
    const struct screwdyn_context *shared = (const struct screwdyn_context *)context;
    integer table = 0;
    memcpy(&own, context, sizeof own);
    if (shared->Moved != shared->Table) {
        table = ((own.joints ? own.joints : own.rows) + 1) * SCREWDYN_COLUMNS * (integer)sizeof(screwdyn_real);
        size += table;
    }
#endif
    more = size > ON_STACK ? malloc((size_t)size) : space;
    if (!more)
        return -1;
#ifdef Py_GIL_DISABLED
    if (table) {
        own.Moved = (screwdyn_real *)((char *)more + size - table);
        memcpy(own.Moved, own.Table, (size_t)table);
        context = (const integer *)&own;
    }
#endif
    status = f->function(context, arrays, (integer)more);
    if (more != space)
        free(more);
    return status;
}

/* The result of a function for the state in `given`, in new arrays or in `out`. NULL without an error if an argument is
 * not plain, or if there is no result. */
static PyObject *computed(const entry *f, const integer *context, PyObject *const *given, PyObject *out)
{
    PyObject *result = NULL;
    integer at[MOST_ARRAYS], sizes[MOST_ARRAYS], status;
    double number;
    const int several = f->outputs > 1, first = f->inputs;
    int j, k;

    for (k = 0; k < first; k++)
        if (!plain(given[k], &f->in[k], context, NPY_ARRAY_CARRAY_RO, &at[k], &sizes[k]))
            return NULL;
    if (out) {
        if (several && (!PyTuple_CheckExact(out) || PyTuple_Size(out) != f->outputs))
            return NULL;
        for (k = first; k < first + f->outputs; k++) {
            PyObject *one = several ? PyTuple_GetItem(out, k - first) : out;
            if (!plain(one, &f->out[k - first], context, NPY_ARRAY_CARRAY, &at[k], &sizes[k]))
                return NULL;
            for (j = 0; j < k; j++)
                if (at[j] < at[k] + sizes[k] && at[k] < at[j] + sizes[j])
                    return NULL;
        }
        result = Py_NewRef(out);
    } else if (!several && !f->out[0].axes) {
        at[first] = (integer)&number;
    } else {
        if (several && !(result = PyTuple_New(f->outputs)))
            return NULL;
        for (k = 0; k < f->outputs; k++) {
            npy_intp shape[SCREWDYN_AXES];
            PyObject *array;
            for (j = 0; j < f->out[k].axes; j++)
                shape[j] = extent(f->out[k].extents[j], context);
            if (!(array = PyArray_SimpleNew(f->out[k].axes, shape, NPY_DOUBLE))) {
                Py_XDECREF(result);
                return NULL;
            }
            at[first + k] = (integer)PyArray_DATA((PyArrayObject *)array);
            if (several)
                PyTuple_SetItem(result, k, array);
            else
                result = array;
        }
    }
    status = f->of ? run(f->of, context, at) : f->code(f->context, at);
    if (status) {
        Py_XDECREF(result);
        return NULL;
    }
    return result ? result : PyArray_Scalar(&number, float64, NULL);
}

/* What a Python function, if any, makes from the results. */
static PyObject *shared(PyObject *share, PyObject *results)
{
    PyObject *made;
    if (!share || !results)
        return results;
    made = PyObject_Call(share, results, NULL);
    Py_DECREF(results);
    return made;
}

/* The arguments of a method, see below: the link, the state, and the frame or wrenches, which alone have a usual value. */
enum { METHODS = 96, ARGUMENTS = 8 };
static struct declared {
    PyObject *slow, *names[ARGUMENTS], *usual;
    int count, link;
    PyObject *quantity; /* of compiled trees its name, else null */
} methods[METHODS];
static PyObject *out_names;

/* Whether arguments are those of a method: all of them, in order, in `values`, and after them `out` or null. */
static inline int arranged(const struct declared *of, PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **values)
{
    Py_ssize_t j, k, named = names ? PyTuple_Size(names) : 0;
    if (count > of->count)
        return 0;
    for (k = 0; k <= of->count; k++)
        values[k] = k < count ? args[k] : NULL;
    for (j = 0; j < named; j++) {
        PyObject *name = PyTuple_GetItem(names, j);
        for (k = count; k < of->count && of->names[k] != name; k++)
            ;
        if (k == of->count && name != out_name)
            return 0;
        values[k] = args[count + j];
    }
    if (of->usual && !values[of->count - 1])
        values[of->count - 1] = of->usual;
    for (k = count; k < of->count && values[k]; k++)
        ;
    return k >= of->count;
}

/* The result for a state by name; NULL as `computed`. */
static PyObject *by_name(const entry *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    const struct declared *of = self->arguments;
    PyObject *values[ARGUMENTS + 1];
    if (!arranged(of, args, count, names, values) || (of->usual && values[of->count - 1] != of->usual))
        return NULL;
    return computed(self, NULL, values, values[of->count]);
}

static PyObject *call(entry *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    const integer *context = NULL;
    PyObject *result = NULL, *out = NULL;
    int plain_names = !names || (PyTuple_Size(names) == 1 && PyTuple_GetItem(names, 0) == out_name);

    if (count == self->inputs + !!self->of && plain_names) {
        if (self->of)
            context = (const integer *)PyArray_DATA((PyArrayObject *)args[0]);
        out = names ? args[count] : NULL;
        result = shared(self->share, computed(self, context, args + !!self->of, out));
    }
    if (!plain_names && self->arguments)
        result = by_name(self, args, count, names);
    return result || PyErr_Occurred() ? result : other(self->slow, NULL, args, count, names);
}

/* The built-in function that calls an entry, which takes over the references. */
static PyObject *builtin_of(entry *made, PyCFunction calls, int flags, const char *name, const char *doc)
{
    PyObject *function;
    made->method.ml_name = name;
    made->method.ml_meth = calls;
    made->method.ml_flags = flags;
    made->method.ml_doc = doc;
    function = PyCFunction_NewEx(&made->method, (PyObject *)made, NULL);
    Py_DECREF(made);
    return function;
}

static entry *entry_of(PyObject *given)
{
    const char *name = PyUnicode_AsUTF8AndSize(given, NULL);
    const kernel *f = name ? found(name) : NULL;
    entry *made = f ? (entry *)PyType_GenericAlloc(entry_type, 0) : NULL;
    if (!made)
        return NULL;
    made->of = f;
    made->inputs = f->inputs;
    made->outputs = f->outputs;
    made->in = f->in;
    made->out = f->out;
    return made;
}

static PyObject *builtin(PyObject *module, PyObject *name)
{
    entry *made = entry_of(name);
    (void)module;
    return made ? builtin_of(made, (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS, made->of->name, NULL) : NULL;
}

/* Copies a float, or all those in a tuple or an array, if there is room; returns their number, -1 for other objects. */
static Py_ssize_t gathered(PyObject *x, double *to, Py_ssize_t room)
{
    Py_ssize_t k, more, count = 0;
    if (PyFloat_CheckExact(x) && room > 0) {
        *to = PyFloat_AsDouble(x);
        return 1;
    }
    if (PyArray_CheckExact(x) && PyArray_DESCR((PyArrayObject *)x) == float64 &&
        PyArray_IS_C_CONTIGUOUS((PyArrayObject *)x) && PyArray_SIZE((PyArrayObject *)x) <= room) {
        memcpy(to, PyArray_DATA((PyArrayObject *)x), (size_t)PyArray_NBYTES((PyArrayObject *)x));
        return PyArray_SIZE((PyArrayObject *)x);
    }
    for (k = 0; PyTuple_Check(x) && k < PyTuple_Size(x); k++, count += more)
        if ((more = gathered(PyTuple_GetItem(x, k), to + count, room - count)) < 0)
            return -1;
    return PyTuple_Check(x) ? count : -1;
}

/* The results of a function for the numbers in its arguments; None if there are others in them. */
static PyObject *call_of_numbers(entry *self, PyObject *const *args, Py_ssize_t count)
{
    double given[MOST_ARRAYS], made[MOST_ARRAYS];
    integer at[2] = {(integer)given, (integer)made};
    Py_ssize_t k, more, n = 0, wanted = self->in->extents[0];
    PyObject *result;
    for (k = 0; k < count; k++, n += more)
        if ((more = gathered(args[k], given + n, wanted - n)) < 0)
            Py_RETURN_NONE;
    if (n != wanted)
        Py_RETURN_NONE;
    self->of->function(NULL, at, 0);
    if ((result = PyTuple_New(self->out->extents[0])))
        for (k = 0; k < self->out->extents[0]; k++)
            PyTuple_SetItem(result, k, PyFloat_FromDouble(made[k]));
    return result;
}

static PyObject *of_numbers(PyObject *module, PyObject *name)
{
    entry *made = entry_of(name);
    (void)module;
    return made ? builtin_of(made, (PyCFunction)(void (*)(void))call_of_numbers, METH_FASTCALL, made->of->name, NULL) : NULL;
}

static PyObject *builtin_at(PyObject *module, PyObject *args)
{
    PyObject *lengths, *shapes, *slow, *owner, *share, *text;
    Py_ssize_t code, context, k, j, number;
    const char *name, *doc;
    entry *made;
    (void)module;
    if (!PyArg_ParseTuple(args, "UnnO!O!OOOn", &text, &code, &context, &PyTuple_Type, &lengths, &PyTuple_Type, &shapes,
                          &slow, &owner, &share, &number))
        return NULL;
    if (PyTuple_Size(lengths) + PyTuple_Size(shapes) > MOST_ARRAYS || !PyTuple_Size(shapes)) {
        PyErr_SetString(PyExc_ValueError, "no arrays, or too many");
        return NULL;
    }
    if (!(doc = PyUnicode_AsUTF8AndSize(text, NULL)) || !(made = (entry *)PyType_GenericAlloc(entry_type, 0)))
        return NULL;
    made->inputs = (int)PyTuple_Size(lengths);
    made->outputs = (int)PyTuple_Size(shapes);
    if (!(made->shapes = calloc((size_t)(made->inputs + made->outputs), sizeof *made->shapes))) {
        Py_DECREF(made);
        return PyErr_NoMemory();
    }
    made->in = made->shapes;
    made->out = made->shapes + made->inputs;
    for (k = 0; k < made->inputs + made->outputs; k++) {
        PyObject *shape = k < made->inputs ? NULL : PyTuple_GetItem(shapes, k - made->inputs);
        struct screwdyn_shape *own = &made->shapes[k];
        own->axes = shape ? (int)PyTuple_Size(shape) : 1;
        if (own->axes > SCREWDYN_AXES)
            PyErr_SetString(PyExc_ValueError, "too many axes");
        for (j = 0; j < own->axes && j < SCREWDYN_AXES; j++)
            own->extents[j] = (int)PyLong_AsSsize_t(shape ? PyTuple_GetItem(shape, j) : PyTuple_GetItem(lengths, k));
    }
    made->code = (compiled *)code;
    made->context = (const void *)context;
    made->slow = Py_NewRef(slow);
    made->owner = Py_NewRef(owner);
    made->arguments = number >= 0 && number < METHODS ? &methods[number] : NULL;
    made->share = share == Py_None ? NULL : Py_NewRef(share);
    made->text = Py_NewRef(text);
    if (PyErr_Occurred()) {
        Py_DECREF(made);
        return NULL;
    }
    name = doc + strlen(doc) + 1; /* after a null character, which ends the text for Python */
    return builtin_of(made, (PyCFunction)(void (*)(void))call, METH_FASTCALL | METH_KEYWORDS, name, doc);
}

/* Methods of the classes of trees and of compiled trees, without a frame of Python: each is a function of its own, because
 * a method has no data.
 *
 * A tree keeps the kernels of its present model in its dictionary. These are an object whose class is derived from
 * `Bound`: the functions of their kind, the context of the whole tree, and by links their contexts and what makes their
 * contributions. A compiled tree keeps built-in functions by quantity, link and frame. */
enum { PLACES = 9, OF_FRAMES = 4 };
typedef struct {
    entry functions[METHODS];
    int places[METHODS]; /* -1: the whole tree; or the place of the dictionary of contexts of links */
    int shares[METHODS]; /* -1; or the place of the dictionary of what makes a contribution from the results */
} kind;
typedef struct {
    PyObject_HEAD
    const kind *of;
    const integer *context;
    PyObject *owner, *by_link[PLACES];
} bound;
static PyTypeObject *bound_type;
static PyObject *kernels_name, *calls_name;

/* The value of a key, which another thread may replace, hence a reference; NULL also if there is none. */
static PyObject *of_key(PyObject *dict, PyObject *key)
{
    PyObject *value = NULL;
#ifdef Py_GIL_DISABLED
    PyDict_GetItemRef(dict, key, &value);
#else
    value = Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
    return value;
}

/* The result of kernels of a model; NULL as `computed`. */
static PyObject *by_kernels(const bound *own, int k, PyObject *const *values, int usual)
{
    const struct declared *of = &methods[k];
    const entry *f = &own->of->functions[k];
    const integer *context = own->context;
    PyObject *found, *share = NULL, *both = NULL;
    int place = own->of->places[k];
    if (!f->of || (!usual && !of->link))
        return NULL;
    if (place >= 0) {
        if (!usual && !(both = PyTuple_Pack(2, values[0], values[of->count - 1])))
            return NULL;
        found = both       ? PyDict_GetItemWithError(own->by_link[OF_FRAMES], both)
                : of->link ? PyDict_GetItemWithError(own->by_link[place], values[0])
                           : PyDict_GetItemWithError(own->by_link[place], Py_None);
        Py_XDECREF(both);
        if (!found)
            return NULL;
        context = (const integer *)PyArray_DATA((PyArrayObject *)found);
    }
    if (own->of->shares[k] >= 0 && !(share = PyDict_GetItemWithError(own->by_link[own->of->shares[k]], values[0])))
        return NULL;
    return shared(share, computed(f, context, values + of->link, NULL));
}

/* The result of the built-in function of a quantity of one link; NULL as `computed`. */
static PyObject *by_code(PyObject *calls, const struct declared *of, PyObject *const *values)
{
    PyObject *frame = of->usual ? values[of->count - 1] : Py_None, *function = NULL, *self, *result = NULL;
    PyObject *key = PyTuple_Pack(3, of->quantity, values[0], frame);
    if (key && (function = of_key(calls, key)) && PyCFunction_CheckExact(function) &&
        (self = PyCFunction_GetSelf(function)) && Py_TYPE(self) == entry_type)
        result = shared(((entry *)self)->share, computed((entry *)self, NULL, values + of->link, values[of->count]));
    Py_XDECREF(key);
    Py_XDECREF(function);
    return result;
}

static PyObject *method(int k, PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    const struct declared *of = &methods[k];
    PyObject *values[ARGUMENTS + 1], *dict, *kept = NULL, *result = NULL;
    int whole = arranged(of, args, count, names, values) && (of->quantity || !values[of->count]);
    if (whole && (dict = PyObject_GenericGetDict(self, NULL))) {
        kept = of_key(dict, of->quantity ? calls_name : kernels_name);
        Py_DECREF(dict);
        if (!kept && !of->quantity && !PyErr_Occurred()) /* they are made now */
            kept = PyObject_GetAttr(self, kernels_name);
        if (kept && of->quantity)
            result = by_code(kept, of, values);
        else if (kept && PyObject_TypeCheck(kept, bound_type) && ((bound *)kept)->of)
            result = by_kernels((bound *)kept, k, values, !of->usual || values[of->count - 1] == of->usual);
        Py_XDECREF(kept);
    }
    if (result)
        return result;
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) /* a link that is no key of a dictionary */
            return NULL;
        PyErr_Clear();
    }
    return whole ? other(of->slow, self, values, of->count, values[of->count] ? out_names : NULL)
                 : other(of->slow, self, args, count, names);
}

#define METHOD(k)                                                                                       \
    static PyObject *method_##k(PyObject *s, PyObject *const *a, Py_ssize_t n, PyObject *w)             \
    {                                                                                                   \
        return method(0##k, s, a, n, w);                                                                \
    }
#define EIGHT(k) METHOD(k##0) METHOD(k##1) METHOD(k##2) METHOD(k##3) METHOD(k##4) METHOD(k##5) METHOD(k##6) METHOD(k##7)
EIGHT(0) EIGHT(1) EIGHT(2) EIGHT(3) EIGHT(4) EIGHT(5) EIGHT(6) EIGHT(7)
EIGHT(10) EIGHT(11) EIGHT(12) EIGHT(13)
#define NAMES(k) \
    method_##k##0, method_##k##1, method_##k##2, method_##k##3, method_##k##4, method_##k##5, method_##k##6, method_##k##7
typedef PyObject *method_function(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
static method_function *const method_functions[METHODS] = {NAMES(0),  NAMES(1),  NAMES(2),  NAMES(3),
                                                           NAMES(4),  NAMES(5),  NAMES(6),  NAMES(7),
                                                           NAMES(10), NAMES(11), NAMES(12), NAMES(13)};

/* define(class, k, text, slow, names, usual, quantity): number k of the methods, for a class. */
static PyObject *new_method(PyObject *module, PyObject *args)
{
    PyObject *owner, *slow, *names, *usual, *quantity;
    struct declared *own;
    int k, j;
    const char *text;
    char *copy;
    PyMethodDef *made;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!isOO!OO", &PyType_Type, &owner, &k, &text, &slow, &PyTuple_Type, &names, &usual,
                          &quantity))
        return NULL;
    if (k < 0 || k >= METHODS || PyTuple_Size(names) > ARGUMENTS || !PyTuple_Size(names)) {
        PyErr_SetString(PyExc_ValueError, "no such method, or too many arguments");
        return NULL;
    }
    made = calloc(1, sizeof *made); /* like the copy of the text and what is declared, it lives as long as the process */
    copy = malloc(strlen(text) + 1 + strcspn(text, "(") + 1);
    if (!made || !copy) {
        free(made);
        free(copy);
        return PyErr_NoMemory();
    }
    strcpy(copy, text);
    made->ml_doc = copy;
    made->ml_name = copy + strlen(text) + 1;
    memcpy(copy + strlen(text) + 1, text, strcspn(text, "("));
    copy[strlen(text) + 1 + strcspn(text, "(")] = 0;
    made->ml_meth = (PyCFunction)(void (*)(void))method_functions[k];
    made->ml_flags = METH_FASTCALL | METH_KEYWORDS;
    own = &methods[k];
    own->slow = Py_NewRef(slow);
    own->count = (int)PyTuple_Size(names);
    for (j = 0; j < own->count; j++) {
        own->names[j] = Py_NewRef(PyTuple_GetItem(names, j));
        PyUnicode_InternInPlace(&own->names[j]);
    }
    own->link = !PyUnicode_CompareWithASCIIString(own->names[0], "link");
    own->usual = usual == Py_Ellipsis ? NULL : Py_NewRef(usual);
    own->quantity = quantity == Py_None ? NULL : Py_NewRef(quantity);
    return PyDescr_NewMethod((PyTypeObject *)owner, made);
}

/* kind(names, places, shares): the kernels that the methods call, None for those that do not. */
static PyObject *new_kind(PyObject *module, PyObject *args)
{
    PyObject *names, *places, *shares;
    Py_ssize_t k;
    kind *made;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyTuple_Type, &names, &PyTuple_Type, &places, &PyTuple_Type, &shares))
        return NULL;
    if (PyTuple_Size(names) > METHODS || PyTuple_Size(names) != PyTuple_Size(places) ||
        PyTuple_Size(names) != PyTuple_Size(shares)) {
        PyErr_SetString(PyExc_ValueError, "as many names as places and shares, and not too many");
        return NULL;
    }
    if (!(made = calloc(1, sizeof *made)))
        return PyErr_NoMemory();
    for (k = 0; k < PyTuple_Size(names); k++) {
        PyObject *name = PyTuple_GetItem(names, k);
        entry *own = &made->functions[k];
        made->places[k] = (int)PyLong_AsLong(PyTuple_GetItem(places, k));
        made->shares[k] = (int)PyLong_AsLong(PyTuple_GetItem(shares, k));
        if (name != Py_None && (own->of = found(PyUnicode_AsUTF8AndSize(name, NULL)))) {
            own->inputs = own->of->inputs;
            own->outputs = own->of->outputs;
            own->in = own->of->in;
            own->out = own->of->out;
        }
    }
    if (PyErr_Occurred()) {
        free(made);
        return NULL;
    }
    return PyCapsule_New(made, NULL, NULL);
}

/* bind(kind, context, by_link): what methods use from now on. */
static PyObject *bind(PyObject *self, PyObject *args)
{
    bound *own = (bound *)self;
    PyObject *of, *context, *by_link;
    const kind *made;
    int k;
    if (!PyArg_ParseTuple(args, "OO!O!", &of, &PyArray_Type, &context, &PyTuple_Type, &by_link) ||
        !(made = (const kind *)PyCapsule_GetPointer(of, NULL)))
        return NULL;
    if (PyTuple_Size(by_link) != PLACES) {
        PyErr_SetString(PyExc_ValueError, "as many dictionaries as places");
        return NULL;
    }
    for (k = 0; k < PLACES; k++) {
        PyObject *before = own->by_link[k];
        own->by_link[k] = Py_NewRef(PyTuple_GetItem(by_link, k));
        Py_XDECREF(before);
    }
    Py_INCREF(context);
    Py_XDECREF(own->owner);
    own->owner = context;
    own->context = (const integer *)PyArray_DATA((PyArrayObject *)context);
    own->of = made; /* at the end, and never null again: other threads may call meanwhile */
    Py_RETURN_NONE;
}

static int bound_traverse(PyObject *self, visitproc visit, void *arg)
{
    int k;
    for (k = 0; k < PLACES; k++)
        Py_VISIT(((bound *)self)->by_link[k]);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int bound_clear(PyObject *self)
{
    int k;
    ((bound *)self)->of = NULL;
    for (k = 0; k < PLACES; k++)
        Py_CLEAR(((bound *)self)->by_link[k]);
    return 0;
}

static void bound_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    bound_clear(self);
    Py_XDECREF(((bound *)self)->owner);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *batch(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *of, *arrays;
    Py_ssize_t states;
    integer at[MOST_ARRAYS], status, space = 0, table = 0;
    struct screwdyn_context context;
    const kernel *f;
    char *memory;
    int k;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!nO!", &name, &PyArray_Type, &of, &states, &PyTuple_Type, &arrays) || !(f = found(name)))
        return NULL;
    for (k = 0; k < PyTuple_Size(arrays) && k < MOST_ARRAYS; k++)
        at[k] = (integer)PyArray_DATA((PyArrayObject *)PyTuple_GetItem(arrays, k));
    memcpy(&context, PyArray_DATA((PyArrayObject *)of),
           PyArray_NBYTES((PyArrayObject *)of) < CONTEXT ? (size_t)PyArray_NBYTES((PyArrayObject *)of) : CONTEXT);
    if (f->scratch) {
        context.states = states;
        space = f->scratch((integer *)&context);
        if (context.Moved != context.Table)
            table = ((context.joints ? context.joints : context.rows) + 1) * SCREWDYN_COLUMNS * (integer)sizeof(double);
    }
    if (!(memory = malloc((size_t)(space + table + 1))))
        return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    if (table) { /* other threads may call meanwhile */
        memcpy(memory + space, context.Table, (size_t)table);
        context.Moved = (double *)(memory + space);
    }
    status = f->function((integer *)&context, at, (integer)memory);
    Py_END_ALLOW_THREADS
    free(memory);
    return PyLong_FromSsize_t(status);
}

static PyObject *address(PyObject *module, PyObject *array)
{
    (void)module;
    if (!PyArray_Check(array)) {
        PyErr_SetString(PyExc_TypeError, "an array is required");
        return NULL;
    }
    return PyLong_FromVoidPtr(PyArray_DATA((PyArrayObject *)array));
}

static PyObject *same(PyObject *module, PyObject *x)
{
    (void)module;
    return Py_NewRef(x);
}

/* A built-in function is pickled as an attribute of its `self`: that of the Python function for other arguments. */
static PyObject *reduced(PyObject *self, PyObject *none)
{
    PyObject *slow = ((entry *)self)->slow, *object, *module, *identity;
    (void)none;
    if (!slow || !(object = PyObject_GetAttrString(slow, "__self__")))
        return slow ? NULL : (PyErr_SetString(PyExc_TypeError, "a kernel cannot be pickled"), NULL);
    module = PyImport_ImportModule("screwdyn.backends.kernels._compiled");
    identity = module ? PyObject_GetAttrString(module, "same") : NULL;
    Py_XDECREF(module);
    if (!identity) {
        Py_DECREF(object);
        return NULL;
    }
    return Py_BuildValue("N(N)", identity, object);
}

static void entry_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((entry *)self)->slow);
    Py_XDECREF(((entry *)self)->owner);
    Py_XDECREF(((entry *)self)->share);
    Py_XDECREF(((entry *)self)->text);
    free(((entry *)self)->shapes);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static int entry_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((entry *)self)->slow);
    Py_VISIT(((entry *)self)->owner);
    Py_VISIT(((entry *)self)->share);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static PyMethodDef functions[] = {
    {"address", address, METH_O, "address(array): that of its first entry"},
    {"batch", batch, METH_VARARGS,
     "batch(name, context, states, arrays): the status of a kernel for some states, while other threads run"},
    {"builtin", builtin, METH_O,
     "builtin(name): the function of a context and one state in contiguous arrays; None for other arguments"},
    {"builtin_at", builtin_at, METH_VARARGS,
     "builtin_at(text, code, context, lengths, shapes, slow, owner, share, k): the function of one state by code at an "
     "address. text: the signature and docstring, a null character, and the name; share: makes a contribution, or None; "
     "k: the number of the method with the same arguments, or -1."},
    {"kind", new_kind, METH_VARARGS,
     "kind(names, places, shares): the kernels that methods call, None for those that do not"},
    {"define", new_method, METH_VARARGS,
     "define(class, k, text, slow, names, usual, quantity): number k of the methods, for a class. names: of the arguments; "
     "usual: the value of the last one, or Ellipsis; quantity: of compiled code, or None."},
    {"of_numbers", of_numbers, METH_O,
     "of_numbers(name): the function of floats, and of tuples and arrays of them, which returns floats; None for others"},
    {"same", same, METH_O, "same(x): x"},
    {NULL, NULL, 0, NULL},
};
static PyMethodDef entry_methods[] = {{"__reduce__", reduced, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)entry_free}, {Py_tp_traverse, (void *)entry_traverse}, {Py_tp_methods, entry_methods}, {0, NULL}};
static PyType_Spec spec = {"screwdyn.backends.kernels._compiled.Entry", sizeof(entry), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
static PyMethodDef bound_methods[] = {
    {"bind", bind, METH_VARARGS, "bind(kind, context, by_link): what methods use from now on"}, {NULL, NULL, 0, NULL}};
static PyType_Slot bound_slots[] = {{Py_tp_dealloc, (void *)bound_free},
                                    {Py_tp_traverse, (void *)bound_traverse},
                                    {Py_tp_clear, (void *)bound_clear},
                                    {Py_tp_methods, bound_methods},
                                    {0, NULL}};
static PyType_Spec bound_spec = {"screwdyn.backends.kernels._compiled.Bound", sizeof(bound), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, bound_slots};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_compiled", "The kernels as machine code.", -1, functions,
                                    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void)
{
    PyObject *made;
    import_array();
    choose();
    float64 = PyArray_DescrFromType(NPY_DOUBLE);
    if (!(out_name = PyUnicode_InternFromString("out")) || !(entry_type = (PyTypeObject *)PyType_FromSpec(&spec)) ||
        !(bound_type = (PyTypeObject *)PyType_FromSpec(&bound_spec)) ||
        !(kernels_name = PyUnicode_InternFromString("_kernels")) ||
        !(calls_name = PyUnicode_InternFromString("_calls")) || !(out_names = PyTuple_Pack(1, out_name)) || !(made = PyModule_Create(&module)) ||
        PyModule_AddObjectRef(made, "Bound", (PyObject *)bound_type))
        return NULL;
#ifdef Py_GIL_DISABLED
    PyUnstable_Module_SetGIL(made, Py_MOD_GIL_NOT_USED);
#endif
    if (PyModule_AddStringConstant(made, "LEVEL", level) ||
        PyModule_AddStringConstant(made, "DIGEST", TEXT(SCREWDYN_DIGEST))) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
