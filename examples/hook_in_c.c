/* A controller without Python and without heap: a UR5 takes up a crate on a hook while it moves, and puts it down.
 * hook_in_c.py writes ur5.h, compiles this program and compares what it prints with the same run in Python. */
#include "ur5.h"
#include <stdio.h>

enum { STEPS = 600, TAKE_UP = 150, PUT_DOWN = 450, SHOWN = 50 };
static const double H = 1.0 / 1024.0, KP = 40.0, KD = 8.0;
static const double TARGET[UR5_NV] = {0.5, -1.0, 1.25, -0.5, 0.75, 0.25};

static struct screwdyn_robot robot; /* the only memory: no heap */

static void show(const char *name, const double *x, screwdyn_integer n)
{
    screwdyn_integer i;
    printf("%s", name);
    for (i = 0; i < n; i++)
        printf(" %a", x[i]);
    printf("\n");
}

/* One step: torques that pull the arm to its target, and the motion that they cause; the hook is free. */
static screwdyn_integer step(double *q, double *qd)
{
    double wanted[SCREWDYN_ROWS] = {0}, tau[SCREWDYN_ROWS], qdd[SCREWDYN_ROWS];
    screwdyn_integer i, status;
    for (i = 0; i < UR5_NV; i++)
        wanted[i] = KP * (TARGET[i] - q[i]) - KD * qd[i];
    status = screwdyn_inverse_dynamics(&robot, q, qd, wanted, tau);
    if (status)
        return status;
    for (i = UR5_NV; i < robot.rows; i++)
        tau[i] = 0.0;
    status = screwdyn_forward_dynamics(&robot, q, qd, tau, qdd);
    for (i = 0; i < robot.rows; i++) {
        qd[i] += H * qdd[i];
        q[i] += H * qd[i];
    }
    return status;
}

int main(void)
{
    double q[SCREWDYN_ROWS] = {0}, qd[SCREWDYN_ROWS] = {0};
    double M[SCREWDYN_ROWS * SCREWDYN_ROWS], C[SCREWDYN_ROWS * SCREWDYN_ROWS], g[SCREWDYN_ROWS];
    screwdyn_integer k, n, status = 0;
    screwdyn_start(&robot, &ur5_base);
    status |= screwdyn_attach(&robot, &ur5);
    for (k = 0; k < STEPS && !status; k++) {
        if (k == TAKE_UP) {
            q[UR5_NQ] = qd[UR5_NV] = 0.0;
            status |= screwdyn_attach(&robot, &ur5_crate);
        }
        if (k == PUT_DOWN)
            status |= screwdyn_detach(&robot, UR5_NV);
        if (k % SHOWN == 0) {
            n = robot.rows;
            status |= screwdyn_dynamics(&robot, q, qd, M, C, g);
            show("q", q, n);
            show("qd", qd, n);
            show("M", M, n * n);
            show("C", C, n * n);
            show("g", g, n);
        }
        status |= step(q, qd);
    }
    return status != 0;
}
