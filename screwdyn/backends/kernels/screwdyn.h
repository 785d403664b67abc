/* The kernels of screwdyn: rigid-body dynamics of any tree, from a table with one row for each freedom.
 *
 * A kernel is a function of a context (the numbers of the robot), of the addresses of its arrays (those of the state,
 * then those of the results, each for all states one after another), and of the address of its scratch space, as many
 * bytes as `scratch` returns. Addresses are integers, so that both are arrays for other languages. */
#ifndef SCREWDYN_H
#define SCREWDYN_H
#include <float.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers; with -DSCREWDYN_FLOAT, single precision for processors without double precision. */
#ifdef SCREWDYN_FLOAT
typedef float screwdyn_real;
#define SCREWDYN_LARGEST 1e6f
#define SCREWDYN_LARGEST_FINITE FLT_MAX
#else
typedef double screwdyn_real;
#define SCREWDYN_LARGEST 1e60 /* products of five such numbers do not overflow */
#define SCREWDYN_LARGEST_FINITE DBL_MAX
#endif
typedef ptrdiff_t screwdyn_integer;

/* Columns of the table, whose last row is that of the base (screwdyn/physics/table.py): pose in the parent's frame, turn
 * and slide of the joint along z, mass, first moment, inertia, row of the parent, first row of a joint of several
 * freedoms, armature. Gravity is in the first columns of the last row. */
enum {
    SCREWDYN_TURN = 12, SCREWDYN_SLIDE = 13, SCREWDYN_MASS = 14, SCREWDYN_FIRST_MOMENT = 15, SCREWDYN_INERTIA = 18,
    SCREWDYN_PARENT = 24, SCREWDYN_FIRST = 25, SCREWDYN_ARMATURE = 26, SCREWDYN_COLUMNS = 27
};

/* The fields of screwdyn/backends/kernels/source.py; those after `Firsts` are 0 unless joints follow others. */
struct screwdyn_context {
    screwdyn_integer states, rows, positions, links, path, above, groups, terms;
    const screwdyn_real *Table;
    const screwdyn_integer *Where, *Groups;
    const screwdyn_real *Terms;
    screwdyn_real *Moved; /* a copy of the table; the table itself if there are no groups */
    const screwdyn_real *Places;
    const screwdyn_integer *Parents, *Firsts; /* columns of the table */
    screwdyn_integer joints, steps;
    const screwdyn_real *Couplings, *OnPath;
    const screwdyn_integer *InARow;
};

/* 0, or a status: -1 input that is not finite or no unit quaternion; 1 + the row of a joint that feels no inertia; other
 * negative numbers: no result. */
typedef screwdyn_integer screwdyn_function(const screwdyn_integer *context, const screwdyn_integer *arrays,
                                           screwdyn_integer scratch);

enum { SCREWDYN_AXES = 6 };
struct screwdyn_shape {
    int axes, extents[SCREWDYN_AXES]; /* an extent, or the complement of its place in the context */
};
struct screwdyn_kernel {
    const char *name;
    screwdyn_function *function;
    screwdyn_integer (*scratch)(const screwdyn_integer *context); /* bytes */
    int inputs, outputs;
    struct screwdyn_shape in[6], out[8];
};
extern const struct screwdyn_kernel screwdyn_kernels[]; /* up to a name that is null */

#ifdef __cplusplus
}
#endif
#endif
