"""Model predictive control in C: a crane grasps a load of 600 kg on the way, and its controller has a bit for it.

Twenty times a second, a controller in C without heap predicts three seconds with one step of an integrator per period,
takes the derivatives there, and improves its forces by a Riccati recursion. Steps and derivatives are generated, with a
bit that says whether the load is there. A controller that leaves the bit at zero does not know the
load, and overshoots.

    python examples/mpc_in_c.py
"""

import ctypes
import subprocess
import tempfile
import timeit
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import screwdyn as sd

crane = sd.KinematicTree()
crane.attach(sd.Inertia.point(100), to="base", joint=sd.prismatic("x", name="rail", damping=5.0), name="trolley")
hinge = sd.revolute("y", passive=True, name="rope", damping=1.0)
crane.attach(sd.Inertia.point(20, (0, 0, -3)), to="trolley", joint=hinge, name="hook")
load = sd.Inertia.box(600, (1, 1, 1), com=(0, 0, -4))
(loaded := crane.copy()).attach(load, to="hook", name="load")

CONTROLLER = """
enum { N = 60, X = 4 };
static const double H = 0.05, Q[X] = {1.0, 100.0, 1.0, 100.0}, LAST = 20.0, R = 1e-6;

/* One Gauss-Newton step for the forces u of the next N periods, to the least sum of Q (x - goal)^2 + R u^2. */
void mpc(const double x0[X], double goal, unsigned long carried, double u[N])
{
    double x[N + 1][X], A[N][X][X], B[N][X], K[N][X], k[N], P[X][X] = {{0}}, p[X], dx[X] = {0};
    for (int i = 0; i < X; ++i) x[0][i] = x0[i];
    for (int n = 0; n < N; ++n) {
        const double tau[2] = {u[n], 0.0};
        double by_q[4], by_qd[4], by_tau[4];
        crane_step_semi_implicit_euler(x[n], x[n] + 2, tau, H, carried, x[n + 1], x[n + 1] + 2);
        crane_derivatives_forward_dynamics(x[n], x[n] + 2, tau, carried, by_q, by_qd, by_tau);
        for (int i = 0; i < 2; ++i) {
            for (int j = 0; j < 2; ++j) {
                A[n][2 + i][j] = H * by_q[2 * i + j];
                A[n][2 + i][2 + j] = (i == j) + H * by_qd[2 * i + j];
                A[n][i][j] = (i == j) + H * A[n][2 + i][j];
                A[n][i][2 + j] = H * A[n][2 + i][2 + j];
            }
            B[n][2 + i] = H * by_tau[2 * i];
            B[n][i] = H * B[n][2 + i];
        }
    }
    for (int i = 0; i < X; ++i) P[i][i] = LAST * Q[i];
    for (int i = 0; i < X; ++i) p[i] = P[i][i] * (x[N][i] - (i ? 0.0 : goal));
    for (int n = N - 1; n >= 0; --n) {
        double PB[X], PA[X][X], S = R, U = R * u[n], next[X][X], slope[X];
        for (int i = 0; i < X; ++i) {
            PB[i] = 0.0;
            for (int j = 0; j < X; ++j) PB[i] += P[i][j] * B[n][j];
        }
        for (int i = 0; i < X; ++i) { S += B[n][i] * PB[i]; U += B[n][i] * p[i]; }
        k[n] = U / S;
        for (int j = 0; j < X; ++j) {
            K[n][j] = 0.0;
            for (int i = 0; i < X; ++i) K[n][j] += PB[i] * A[n][i][j] / S;
            for (int i = 0; i < X; ++i) {
                PA[i][j] = -PB[i] * K[n][j];
                for (int l = 0; l < X; ++l) PA[i][j] += P[i][l] * A[n][l][j];
            }
        }
        for (int i = 0; i < X; ++i) {
            slope[i] = Q[i] * (x[n][i] - (i ? 0.0 : goal)) - K[n][i] * U;
            for (int l = 0; l < X; ++l) slope[i] += A[n][l][i] * p[l];
            for (int j = 0; j < X; ++j) {
                next[i][j] = i == j ? Q[i] : 0.0;
                for (int l = 0; l < X; ++l) next[i][j] += A[n][l][i] * PA[l][j];
            }
        }
        for (int i = 0; i < X; ++i) { p[i] = slope[i]; for (int j = 0; j < X; ++j) P[i][j] = next[i][j]; }
    }
    for (int n = 0; n < N; ++n) {
        double du = -k[n], then[X];
        for (int i = 0; i < X; ++i) du -= K[n][i] * dx[i];
        for (int i = 0; i < X; ++i) {
            then[i] = B[n][i] * du;
            for (int j = 0; j < X; ++j) then[i] += A[n][i][j] * dx[j];
        }
        for (int i = 0; i < X; ++i) dx[i] = then[i];
        u[n] += du;
    }
}
"""
names = ["step:semi_implicit_euler", "derivatives:forward_dynamics"]
model = loaded.c_source(names, prefix="crane_", optional=["load"])
with tempfile.TemporaryDirectory() as folder:
    (source := Path(folder, "mpc.c")).write_text(model + CONTROLLER, encoding="ascii")
    flags = ["-std=c99", "-Wall", "-Werror", "-O2", "-fPIC", "-shared"]
    subprocess.run(["cc", *flags, source, "-o", made := Path(folder, "mpc.so"), "-lm"], check=True)
    mpc = ctypes.CDLL(str(made)).mpc
vector = np.ctypeslib.ndpointer(dtype=np.float64, flags="C")
mpc.argtypes, mpc.restype = [vector, ctypes.c_double, ctypes.c_ulong, vector], None

# Operations of a call, counted in the text: those of the model for each of the 60 periods, and of the recursion.
body = model[model.index("#include") :]
of_model = sum(body.count(f" {sign} ") for sign in "+-*/") + body.count("sin(") + body.count("cos(")
recursion = 24 + 32 + 16 + 48 + 144 + 44 + 128 + 45  # A and B; P B; S and U; K; P A; p; P; forces
u = np.zeros(60)
each = min(timeit.repeat(lambda: mpc(np.array([0, 0.1, 0, 0]), 6.0, 1, u), number=100, repeat=5)) / 100
print(f"{60 * of_model} operations of the model, about {60 * recursion} of the recursion: {1e6 * each:.0f} µs a call")


# On the simulated crane, which grasps the load at 2 s while it moves.
def controlled(told):
    u, forces = np.zeros(60), []

    def force(t, state):
        carried = int(told and "load" in state.tree.links)
        u[:-1], u[-1] = u[1:].copy(), 0.0  # the forces found in the last period
        for _ in range(2):
            mpc(np.concatenate([state.q, state.qd]), 6.0, carried, u)
        forces.append(u[0])
        return [u[0], 0.0]

    grasp = sd.Grasp(load, to="hook", name="load", twist="co_moving", time=2.0)
    return sd.simulate(crane.copy(), sd.State(crane), 14.0, force, [grasp], control_period=0.05, step=0.02)


plt.style.use("petroff10")
figure, (way, swing) = plt.subplots(2, 1, figsize=(8, 6), sharex=True, layout="constrained")
late = {}
for name, told in {"does not know the load": False, "sets the bit of the load": True}.items():
    run = controlled(told)
    way.plot(run.t, run["rail"], label=name)
    swing.plot(run.t, np.degrees(run["rope"]), label=name)
    late[told] = np.abs(run["rail"] - 6.0)[run.t > 8].max()
    print(f"{name}: up to {late[told]:.2f} m from the goal after 8 s")
for chart in (way, swing):
    chart.axvspan(2, 14, color="0.93")
way.set(ylabel="trolley (m)", xlim=(0, 14), title="from 2 s on with the load")
swing.set(ylabel="rope from the vertical (°)", xlabel="time (s)")
way.legend(frameon=False)
figure.savefig("mpc_in_c.png")
print("figure: mpc_in_c.png")
