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
#define SCREWDYN_ROUNDING (4 * FLT_EPSILON)
#define SCREWDYN_LEAST_GYRATION 1e-12f
#else
typedef double screwdyn_real;
#define SCREWDYN_LARGEST 1e60 /* products of five such numbers do not overflow */
#define SCREWDYN_LARGEST_FINITE DBL_MAX
#define SCREWDYN_ROUNDING (4 * DBL_EPSILON) /* of an inertia, relative; what is smaller is none */
#define SCREWDYN_LEAST_GYRATION 1e-24 /* square of a radius of gyration, m^2; what is smaller is rounding of poses */
#endif
typedef ptrdiff_t screwdyn_integer;

/* Columns of the table, whose last row is that of the base (screwdyn/physics/table.py): pose in the parent's frame, turn
 * and slide of the joint along z, mass, first moment, inertia, row of the parent, first row of a joint of several
 * freedoms, armature. Gravity is in the first columns of the last row. */
enum {
    SCREWDYN_TURN = 12, SCREWDYN_SLIDE = 13, SCREWDYN_MASS = 14, SCREWDYN_FIRST_MOMENT = 15, SCREWDYN_INERTIA = 18,
    SCREWDYN_PARENT = 24, SCREWDYN_FIRST = 25, SCREWDYN_ARMATURE = 26, SCREWDYN_COLUMNS = 27
};

/* The fields of screwdyn/backends/kernels/source.py; from `joints` to `InARow` they are 0 unless joints follow others. */
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
    screwdyn_integer columns; /* ten for each of the links */
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

#ifndef SCREWDYN_API /* which is defined where the kernels become a part of another library */

/* A robot without heap (docs/c_library.md): rows in arrays of a fixed size, from tables that `tree.to_c_table()` writes.
 *
 *     screwdyn_start(&robot, &arm_base);
 *     screwdyn_attach(&robot, &arm);
 *     status = screwdyn_inverse_dynamics(&robot, q, qd, qdd, tau);
 *
 * A robot contains no address, so that `copy = robot` is another robot. Each thread needs its own. */

#ifndef SCREWDYN_ROWS
#define SCREWDYN_ROWS 16 /* freedoms at most */
#endif
#ifndef SCREWDYN_GROUPS
#define SCREWDYN_GROUPS 0 /* spherical, planar and free joints at most */
#endif
#define SCREWDYN_SCRATCH(n) ((104 + (n)) * (n)) /* numbers of scratch space of the functions below for n rows */

enum {
    SCREWDYN_WRONG_INPUT = -1, /* an input is not finite or no unit quaternion, or a result is not finite */
    SCREWDYN_REFUSED = -4      /* no room for a part, or no such row; the robot is as before */
};

/* A row of the table: a freedom, and the bodies that move with it, in a frame whose z axis is that of the joint. */
struct screwdyn_row {
    screwdyn_real R[9], p[3];    /* home: the pose of the frame in that of the parent at coordinate 0 */
    screwdyn_real turn, slide;   /* 1, 0: revolute; 0, 1: prismatic */
    screwdyn_real mass, first_moment[3], inertia[6]; /* about the origin: xx, xy, xz, yy, yz, zz; kg, kg m, kg m^2 */
    screwdyn_real parent, first; /* rows; parent -1: the base */
    screwdyn_real armature;
};

/* Rows that are attached together; rows and positions count from the first one of the part. */
struct screwdyn_part {
    screwdyn_integer onto; /* the robot's row that carries the part, -1: the base */
    screwdyn_integer rows, positions, groups, terms;
    const struct screwdyn_row *table;
    const screwdyn_integer *where; /* the position of each row; -1 in groups */
    const screwdyn_integer (*group)[4];
    const screwdyn_real (*term)[4];
};

struct screwdyn_robot {
    screwdyn_integer rows, positions, groups, terms; /* rows: the number nv of freedoms; positions: nq */
    struct screwdyn_row table[SCREWDYN_ROWS + 1], moved[SCREWDYN_GROUPS ? SCREWDYN_ROWS + 1 : 1]; /* the base is last */
    screwdyn_integer parents[SCREWDYN_ROWS], firsts[SCREWDYN_ROWS + 1], where[SCREWDYN_ROWS];
    screwdyn_integer group[SCREWDYN_GROUPS + 1][4];
    screwdyn_real term[9 * SCREWDYN_GROUPS + 1][4], scratch[SCREWDYN_SCRATCH(SCREWDYN_ROWS)];
};

/* A robot that consists of its base; gravity is base.R[0] to [2]. */
static inline void screwdyn_start(struct screwdyn_robot *robot, const struct screwdyn_row *base)
{
    robot->rows = robot->positions = robot->groups = robot->terms = 0;
    robot->table[0] = *base;
    robot->firsts[0] = -1;
}

/* Attaches a part; its freedoms and positions are the last ones. 0, or SCREWDYN_REFUSED. */
static inline screwdyn_integer screwdyn_attach(struct screwdyn_robot *robot, const struct screwdyn_part *part)
{
    const screwdyn_integer n = robot->rows;
    screwdyn_integer i, k;
    if (part->onto < -1 || part->onto >= n || part->rows > SCREWDYN_ROWS - n ||
        part->groups > SCREWDYN_GROUPS - robot->groups)
        return SCREWDYN_REFUSED;
    robot->table[n + part->rows] = robot->table[n];
    robot->firsts[n + part->rows] = -1;
    for (i = 0; i < part->rows; i++) {
        struct screwdyn_row *row = &robot->table[n + i];
        *row = part->table[i];
        robot->parents[n + i] = row->parent < 0 ? part->onto : n + (screwdyn_integer)row->parent;
        robot->firsts[n + i] = n + (screwdyn_integer)row->first;
        row->parent = (screwdyn_real)robot->parents[n + i];
        row->first = (screwdyn_real)robot->firsts[n + i];
        robot->where[n + i] = part->where[i] < 0 ? -1 : robot->positions + part->where[i];
    }
    for (i = 0; i < part->groups; i++)
        for (k = 0; k < 4; k++)
            robot->group[robot->groups + i][k] = part->group[i][k] + (k == 0 ? n : k == 1 ? robot->positions : 0);
    for (i = 0; i < part->terms; i++)
        for (k = 0; k < 4; k++)
            robot->term[robot->terms + i][k] = part->term[i][k] + (screwdyn_real)(k < 3 ? n : 0);
    robot->rows += part->rows;
    robot->positions += part->positions;
    robot->groups += part->groups;
    robot->terms += part->terms;
    return 0;
}

/* Attaches one revolute or prismatic joint onto the row `parent`, -1: the base. 0, or SCREWDYN_REFUSED. */
static inline screwdyn_integer screwdyn_attach_row(struct screwdyn_robot *robot, const struct screwdyn_row *row)
{
    const screwdyn_integer where = 0;
    struct screwdyn_row own = *row;
    const struct screwdyn_part part = {(screwdyn_integer)row->parent, 1, 1, 0, 0, &own, &where, 0, 0};
    own.parent = -1;
    own.first = 0;
    return screwdyn_attach(robot, &part);
}

/* Detaches a row and all rows that were attached after it. 0, or SCREWDYN_REFUSED, also within a group. */
static inline screwdyn_integer screwdyn_detach(struct screwdyn_robot *robot, screwdyn_integer row)
{
    screwdyn_integer i;
    if (row < 0 || row >= robot->rows || robot->firsts[row] != row)
        return SCREWDYN_REFUSED;
    for (i = row; i < robot->rows; i++)
        robot->positions -= robot->where[i] >= 0;
    for (; robot->groups && robot->group[robot->groups - 1][0] >= row; robot->groups--)
        robot->positions -= robot->group[robot->groups - 1][2] + robot->group[robot->groups - 1][3];
    while (robot->terms && robot->term[robot->terms - 1][0] >= (screwdyn_real)row)
        robot->terms--;
    robot->table[row] = robot->table[robot->rows];
    robot->firsts[row] = -1;
    robot->rows = row;
    return 0;
}

/* The status of a kernel for the addresses of its arrays. */
static inline screwdyn_integer screwdyn_run(struct screwdyn_robot *robot, screwdyn_function *kernel,
                                            const screwdyn_integer *arrays)
{
    struct screwdyn_row *moved = robot->groups ? robot->moved : robot->table;
    const screwdyn_integer context[] = {/* the fields of screwdyn_context */
        1, robot->rows, robot->positions, 0, 0, 0, robot->groups, robot->terms, (screwdyn_integer)robot->table,
        (screwdyn_integer)robot->where, (screwdyn_integer)robot->group, (screwdyn_integer)robot->term,
        (screwdyn_integer)moved, 0, (screwdyn_integer)robot->parents, (screwdyn_integer)robot->firsts, 0, 0, 0, 0, 0};
    screwdyn_integer i;
    for (i = 0; robot->groups && i <= robot->rows; i++)
        moved[i] = robot->table[i];
    return kernel(context, arrays, (screwdyn_integer)robot->scratch);
}

/* Positions q have nq entries; rates, accelerations and forces nv; M and C nv x nv, row by row. Results are valid if the
 * status is 0; 1 + i: row i feels no inertia. A result may not be an argument. */
extern screwdyn_function screwdyn_run_mass_matrix, screwdyn_run_coriolis_matrix, screwdyn_run_gravity_vector,
    screwdyn_run_dynamics, screwdyn_run_inverse_dynamics, screwdyn_run_forward_dynamics;

static inline screwdyn_integer screwdyn_mass_matrix(struct screwdyn_robot *robot, const screwdyn_real *q, screwdyn_real *M)
{
    const screwdyn_integer arrays[] = {(screwdyn_integer)q, (screwdyn_integer)M};
    return screwdyn_run(robot, screwdyn_run_mass_matrix, arrays);
}

static inline screwdyn_integer screwdyn_coriolis_matrix(struct screwdyn_robot *robot, const screwdyn_real *q,
                                                        const screwdyn_real *qd, screwdyn_real *C)
{
    const screwdyn_integer arrays[] = {(screwdyn_integer)q, (screwdyn_integer)qd, (screwdyn_integer)C};
    return screwdyn_run(robot, screwdyn_run_coriolis_matrix, arrays);
}

static inline screwdyn_integer screwdyn_gravity_vector(struct screwdyn_robot *robot, const screwdyn_real *q,
                                                       screwdyn_real *g)
{
    const screwdyn_integer arrays[] = {(screwdyn_integer)q, (screwdyn_integer)g};
    return screwdyn_run(robot, screwdyn_run_gravity_vector, arrays);
}

/* M, C and g in one call that shares the work. */
static inline screwdyn_integer screwdyn_dynamics(struct screwdyn_robot *robot, const screwdyn_real *q,
                                                 const screwdyn_real *qd, screwdyn_real *M, screwdyn_real *C,
                                                 screwdyn_real *g)
{
    const screwdyn_integer arrays[] = {(screwdyn_integer)q, (screwdyn_integer)qd, (screwdyn_integer)M,
                                       (screwdyn_integer)C, (screwdyn_integer)g};
    return screwdyn_run(robot, screwdyn_run_dynamics, arrays);
}

/* tau = M qdd + C qd + g. */
static inline screwdyn_integer screwdyn_inverse_dynamics(struct screwdyn_robot *robot, const screwdyn_real *q,
                                                         const screwdyn_real *qd, const screwdyn_real *qdd,
                                                         screwdyn_real *tau)
{
    const screwdyn_integer arrays[] = {(screwdyn_integer)q, (screwdyn_integer)qd, (screwdyn_integer)qdd,
                                       (screwdyn_integer)tau};
    return screwdyn_run(robot, screwdyn_run_inverse_dynamics, arrays);
}

/* The accelerations that forces of the joints cause. */
static inline screwdyn_integer screwdyn_forward_dynamics(struct screwdyn_robot *robot, const screwdyn_real *q,
                                                         const screwdyn_real *qd, const screwdyn_real *tau,
                                                         screwdyn_real *qdd)
{
    const screwdyn_integer arrays[] = {(screwdyn_integer)q, (screwdyn_integer)qd, (screwdyn_integer)tau,
                                       (screwdyn_integer)qdd};
    return screwdyn_run(robot, screwdyn_run_forward_dynamics, arrays);
}
#endif /* SCREWDYN_API */

#ifdef __cplusplus
}
#endif
#endif
